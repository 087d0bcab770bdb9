/** Parses numbers on the command line. Errors name the option, what was expected and what was given. */
import { SluiceError } from "sluice";

/** Accepts underscores: `1_000_000`. */
export function parseCount(name: string): (text: string) => number {
  return (text) => {
    const value = Number(text.replaceAll("_", ""));
    if (Number.isSafeInteger(value) && value >= 1) return value;
    throw new SluiceError(
      "invalid-setting",
      `${name}: expected a whole number of at least 1, got ${JSON.stringify(text)}`,
    );
  };
}

/** Parses `4gb`, `512mb`: binary units, as in Redis's own settings. */
export function parseSize(name: string): (text: string) => number {
  return (text) => {
    const found = /^(\d+(?:\.\d+)?)(mb|gb)$/i.exec(text.trim());
    if (found !== null && Number(found[1]) > 0)
      return Number(found[1]) * (found[2]!.toLowerCase() === "gb" ? 2 ** 30 : 2 ** 20);
    throw new SluiceError(
      "invalid-setting",
      `${name}: expected a size such as 4gb or 512mb, got ${JSON.stringify(text)}`,
    );
  };
}
