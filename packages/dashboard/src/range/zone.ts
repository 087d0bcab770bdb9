/** The time zone of all times on the page: from the URL, otherwise the last choice, otherwise the browser's. */
import { setZone } from "../components/format.js";

const KEPT_AS = "sluice-zone";

export const browserZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;

export function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

export function zoneIn(search: string): string {
  const given = new URLSearchParams(search).get("zone") ?? localStorage.getItem(KEPT_AS) ?? "";
  return given !== "" && isZone(given) ? given : browserZone;
}

/** Call this before rendering. */
export function applyZone(search: string): string {
  const zone = zoneIn(search);
  setZone(zone);
  return zone;
}

export function keepZone(zone: string): void {
  if (zone === browserZone) localStorage.removeItem(KEPT_AS);
  else localStorage.setItem(KEPT_AS, zone);
}
