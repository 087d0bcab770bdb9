/**
 * The option `settle`: where a response reports what its request has cost, for rules with `estimate`. Read from the response alone: nothing
 * that a client sends is trusted.
 */
import { SluiceError } from "../errors.js";
import type { Attributes } from "../rules/rule.js";
import { type ResponseReading, wholeNumber } from "./response-reading.js";

/** A header field of the response; a number in its JSON, by JSON pointer (RFC 6901); or the bytes of its body. */
export type CostSource = { readonly header: string } | { readonly body: string } | "bytes";

/** A response that has ended. */
export interface EndedResponse {
  readonly status: number;
  /** Bytes of the body, as far as it was handed to the connection. */
  readonly bytes: number;
  /** False if the client disconnected, or the handler failed, before its end. */
  readonly isWhole: boolean;
  header(name: string): string | undefined;
}

/**
 * By cost attribute, where the response reports the cost; or a function that returns the costs once the response has ended. Costs that are
 * not reported keep what was held; if none is reported and the status is 400 or above, what was held is given back.
 */
export type SettleOption<Request> =
  | Readonly<Record<string, CostSource>>
  | ((request: Request, response: EndedResponse) => Attributes | undefined | Promise<Attributes | undefined>);

/** A response of any framework, while it runs and at its end. */
export interface SeenResponse {
  readonly reading: ResponseReading;
  readonly headerOf: (name: string) => string | undefined;
}

export function checkSettle(settle: unknown): void {
  if (settle === undefined || typeof settle === "function") return;
  const isTable = typeof settle === "object" && settle !== null && !Array.isArray(settle);
  if (!isTable || Object.keys(settle).length === 0) throw mistake("settle", "a table of costs, or a function", settle);
  for (const [cost, source] of Object.entries(settle)) {
    const { header, body } = (source ?? {}) as { header?: unknown; body?: unknown };
    const isPointer = typeof body === "string" && body.startsWith("/");
    const isField = typeof header === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(header);
    const isOne = (header === undefined) !== (body === undefined);
    if (source !== "bytes" && !(isOne && (isField || isPointer)))
      throw mistake(`settle.${cost}`, '{ header: "x-cost" }, { body: "/usage/total" } or "bytes"', source);
  }
}

function mistake(place: string, expected: string, got: unknown): SluiceError {
  return new SluiceError("invalid-setting", `${place}: expected ${expected}, got ${JSON.stringify(got) ?? typeof got}`);
}

/** The JSON pointers to read, without their first slash. */
export function bodyPaths(settle: SettleOption<never>): string[] {
  if (typeof settle === "function") return [];
  return Object.values(settle).flatMap((source) =>
    typeof source === "object" && "body" in source ? [source.body.slice(1)] : [],
  );
}

/** Whether the response's bytes must be seen. */
export function readsBody(settle: SettleOption<never>): boolean {
  if (typeof settle === "function") return true;
  return Object.values(settle).some((source) => source === "bytes" || "body" in source);
}

/** The costs that a response has reported so far. */
export function toldCosts(
  settle: Readonly<Record<string, CostSource>>,
  { reading, headerOf }: SeenResponse,
): Record<string, number> {
  // From entries, not by assignment: a cost's attribute may be named "__proto__".
  return Object.fromEntries(
    Object.entries(settle).flatMap(([cost, source]) => {
      const units = unitsOf(source, reading, headerOf);
      return units === undefined ? [] : [[cost, units]];
    }),
  );
}

function unitsOf(source: CostSource, reading: ResponseReading, headerOf: SeenResponse["headerOf"]): number | undefined {
  if (source === "bytes") return reading.bytes;
  if ("header" in source) return wholeNumber(headerOf(source.header.toLowerCase())?.trim() ?? "");
  return reading.numberAt(source.body.slice(1));
}
