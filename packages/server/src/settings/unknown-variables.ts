/**
 * Variables that begin like ours and are none: the service warns of each at its start, because a misspelled setting that is dropped in
 * silence is found in an incident. In: the environment, and the variables that mean something. Out: names with reasons. Pure.
 */
import { nearestName } from "sluice/internal";

type Environment = Readonly<Record<string, string | undefined>>;

/** Of the repository's own tests and benchmarks. */
const TOOLS = /^SLUICE_(TEST|PEER)_/;

/**
 * Kubernetes gives every pod variables of the Services around it (`enableServiceLinks`): of one that is called sluice, SLUICE_SERVICE_HOST,
 * SLUICE_PORT_8080_TCP and others, also SLUICE_PORT with a URL.
 */
const SERVICE_LINK = /_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$/;

/** Whether Kubernetes wrote it, for a Service: such a variable is no setting, whatever its name. */
export function isServiceLink(name: string, value: string): boolean {
  return name.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(value);
}

export function unknownVariables(env: Environment, known: readonly string[]): { name: string; why: string }[] {
  const names = new Set(known);
  return Object.entries(env).flatMap(([name, value]) => {
    if (!name.startsWith("SLUICE_") || !value || names.has(name)) return [];
    if (TOOLS.test(name) || SERVICE_LINK.test(name)) return [];
    const nearest = meant(bare(name), known.map(bare));
    const guess = nearest === undefined ? "sluice serve --help lists them" : `did you mean SLUICE_${nearest}?`;
    return [{ name, why: `no setting has this name (${guess})` }];
  });
}

function meant(written: string, names: readonly string[]): string | undefined {
  // Letters in another order are two edits, which is too many for a short name.
  const letters = (text: string): string => [...text].sort().join("");
  return nearestName(written, names) ?? names.find((name) => letters(name) === letters(written));
}

/** Without the prefix, which would make every name look near. */
function bare(name: string): string {
  return name.slice("SLUICE_".length);
}
