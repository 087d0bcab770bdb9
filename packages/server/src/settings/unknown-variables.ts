/**
 * Variables with our prefix that mean nothing: the service warns about each at startup, because a silently dropped misspelled setting is
 * otherwise found during an incident. In: the environment, and the known variables. Out: names with reasons. Pure.
 */
import { nearestName } from "sluice/internal";
import { isServiceLinkName } from "./service-links.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** Used by the repository's own tests and benchmarks. */
const TOOLS = /^SLUICE_(TEST|PEER)_/;

export function unknownVariables(env: Environment, known: readonly string[]): { name: string; why: string }[] {
  const names = new Set(known);
  return Object.entries(env).flatMap(([name, value]) => {
    if (!name.startsWith("SLUICE_") || !value || names.has(name)) return [];
    if (TOOLS.test(name) || isServiceLinkName(name)) return [];
    const nearest = meant(bare(name), known.map(bare));
    const guess = nearest === undefined ? "sluice serve --help lists them" : `did you mean SLUICE_${nearest}?`;
    return [{ name, why: `no setting has this name (${guess})` }];
  });
}

function meant(written: string, names: readonly string[]): string | undefined {
  // Transposed letters are two edits, too many for a short name.
  const letters = (text: string): string => [...text].sort().join("");
  return nearestName(written, names) ?? names.find((name) => letters(name) === letters(written));
}

/** Without the prefix, which would make all names look similar. */
function bare(name: string): string {
  return name.slice("SLUICE_".length);
}
