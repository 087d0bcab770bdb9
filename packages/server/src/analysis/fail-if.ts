/**
 * Parses `--fail-if`: compares a figure of the simulation with a number or a share of all requests, such as `newlyRefused > 0.1%`. Pure.
 */
import { SluiceError } from "sluice";
import type { Simulation } from "./simulate.js";

const figures = {
  refused: ({ refused }) => refused,
  newlyRefused: ({ against }) => against?.newlyRefused,
  newlyAdmitted: ({ against }) => against?.newlyAdmitted,
  unmatched: ({ unmatched }) => unmatched,
  malformed: ({ malformed }) => malformed,
  gaveUp: ({ comeBack }) => comeBack?.gaveUp,
} as const satisfies Record<string, (simulation: Simulation) => number | undefined>;

const SHAPE = /^\s*([a-zA-Z]+)\s*(>=|<=|==|>|<)\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/;

const compare: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  "==": (a, b) => a === b,
};

export interface FailIf {
  readonly text: string;
  readonly needsAgainst: boolean;
  readonly needsComeBack: boolean;
  readonly holds: (simulation: Simulation) => boolean;
}

export function parseFailIf(text: string): FailIf {
  const [, name, operator, number, percent] = SHAPE.exec(text) ?? [];
  const figure = name !== undefined && Object.hasOwn(figures, name) ? figures[name as keyof typeof figures] : undefined;
  if (figure === undefined) {
    throw new SluiceError(
      "invalid-setting",
      `fail-if: expected one of ${Object.keys(figures).join(", ")}, then >, >=, <, <= or ==, then a number or a share, such as "newlyRefused > 0.1%", got ${JSON.stringify(text)}`,
    );
  }
  return {
    text: text.trim(),
    needsAgainst: name!.startsWith("newly"),
    needsComeBack: name === "gaveUp",
    holds: (simulation) => {
      const found = figure(simulation) ?? 0;
      const value = percent === "%" ? (simulation.total === 0 ? 0 : (100 * found) / simulation.total) : found;
      return compare[operator!]!(value, Number(number));
    },
  };
}
