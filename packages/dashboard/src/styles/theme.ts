/** Light, dark, or the system's theme. The choice is stored in this browser; colours follow `color-scheme`. */
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const KEY = "sluice-theme";
const listeners = new Set<() => void>();
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen: Theme = read();

function read(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    // Storage may be disabled; the choice then lasts as long as the page.
    return "system";
  }
}

function show(): void {
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  for (const listener of listeners) listener();
}

/** Call this once, before the first paint. */
export function startTheme(): void {
  show();
  system.addEventListener("change", show);
}

export function chooseTheme(theme: Theme): void {
  chosen = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // As above.
  }
  show();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** The effective theme: light or dark. */
export function useTheme(): "light" | "dark" {
  return useSyncExternalStore(subscribe, () => (chosen === "system" ? (system.matches ? "dark" : "light") : chosen));
}

export function useChosenTheme(): Theme {
  return useSyncExternalStore(subscribe, () => chosen);
}
