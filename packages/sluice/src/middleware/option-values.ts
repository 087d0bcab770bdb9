/**
 * What the options of a middleware must be, as far as the limiter does not check them. In: options, as JavaScript callers write them. Out:
 * nothing, or `invalid-setting` for the first mistake: a misspelled `ignoreCase` that is ignored lets clients choose a path's spelling.
 */
import { SluiceError } from "../errors.js";

interface Values {
  readonly expected: string;
  readonly accepts: (value: unknown) => boolean;
}

const FUNCTION: Values = { expected: "a function", accepts: (value) => typeof value === "function" };
const BOOLEAN: Values = { expected: "true or false", accepts: (value) => typeof value === "boolean" };
const COST: Values = {
  expected: "a whole number of at least 0, or a function",
  accepts: (value) => typeof value === "function" || (Number.isSafeInteger(value) && (value as number) >= 0),
};
const SLASHES: Values = {
  expected: '"keep" or "decode"',
  accepts: (value) => value === "keep" || value === "decode",
};

// Maps, not objects: an option may be named "constructor".
const optionValues = new Map<string, Values>([
  ["attributes", FUNCTION],
  ["skip", FUNCTION],
  ["address", FUNCTION],
  ["onRefused", FUNCTION],
  ["cost", COST],
  ["skipSuccessful", BOOLEAN],
  ["skipFailed", BOOLEAN],
  ["throwRefusals", BOOLEAN],
]);
const pathValues = new Map<string, Values>([
  ["encodedSlashes", SLASHES],
  ["ignoreCase", BOOLEAN],
  ["ignoreTrailingSlash", BOOLEAN],
  ["ignoreParams", BOOLEAN],
]);

export function checkValues(options: object): void {
  for (const [name, value] of Object.entries(options)) check(name, value, optionValues.get(name));
  const { paths } = options as { readonly paths?: unknown };
  if (paths === undefined) return;
  if (typeof paths !== "object" || paths === null || Array.isArray(paths)) throw refused("paths", "an object", paths);
  for (const [name, value] of Object.entries(paths)) {
    const values = pathValues.get(name);
    if (values === undefined) {
      throw new SluiceError(
        "invalid-setting",
        `paths.${name}: no such option; known are ${[...pathValues.keys()].join(", ")}`,
      );
    }
    check(`paths.${name}`, value, values);
  }
}

/** `undefined` counts as absent: callers write it for an option they leave out. */
function check(place: string, value: unknown, values: Values | undefined): void {
  if (values === undefined || value === undefined || values.accepts(value)) return;
  throw refused(place, values.expected, value);
}

function refused(place: string, expected: string, value: unknown): SluiceError {
  return new SluiceError(
    "invalid-setting",
    `${place}: expected ${expected}, got ${JSON.stringify(value) ?? typeof value}`,
  );
}
