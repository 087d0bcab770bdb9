/** Parses a format's template into fixed text and variables, in the syntax of nginx's `log_format`. Pure. */
import { SluiceError } from "sluice";

interface Part {
  readonly variable: string;
  /** The fixed text between this variable and the next. */
  readonly until: string;
  /** Whether the variable is in quotes, where a backslash escapes. */
  readonly isQuoted: boolean;
}

export interface Template {
  readonly start: string;
  readonly parts: readonly Part[];
}

const VARIABLE = /\$(?:\{([a-z0-9_]+)\}|([a-z0-9_]+))/gi;

export function compileTemplate(text: string): Template {
  const variables = [...text.matchAll(VARIABLE)];
  const start = text.slice(0, variables[0]?.index ?? text.length);
  const parts = variables.map((found, i): Part => {
    const from = found.index + found[0].length;
    const until = text.slice(from, variables[i + 1]?.index ?? text.length);
    const isQuoted = text[found.index - 1] === '"' && until.startsWith('"');
    return { variable: (found[1] ?? found[2])!.toLowerCase(), until, isQuoted };
  });
  const doubled = parts.findIndex(({ until }, i) => until === "" && i < parts.length - 1);
  if (doubled >= 0) {
    const pair = `$${parts[doubled]!.variable}$${parts[doubled + 1]!.variable}`;
    throw new SluiceError(
      "invalid-setting",
      `format: expected text between two variables, got ${JSON.stringify(pair)}`,
    );
  }
  return { start, parts };
}
