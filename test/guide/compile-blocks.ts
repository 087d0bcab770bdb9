/**
 * A block of TypeScript or JavaScript as a module that the compiler can judge: its imports first, its statements in a function, and
 * declarations of the names that its page takes as given. In: a block. Out: the text of a file. Pure.
 */
import type { Block } from "./read-blocks.js";

/** What pages take as given, with the type that a program would have there. */
const given: Readonly<Record<string, string>> = {
  limiter: 'declare const limiter: import("sluice").Limiter;',
  rules: 'declare const rules: import("sluice").Rule[];',
  token: "declare const token: string;",
  requestId: "declare const requestId: string;",
  url: "declare const url: string;",
  tooMany: "declare function tooMany(retryAfterMs: number): void;",
  work: "declare function work(): Promise<{ usage: { completion_tokens: number } }>;",
  exportEverything: "declare function exportEverything(options: { signal: AbortSignal }): Promise<void>;",
  timeOf: "declare function timeOf(request: unknown): Promise<number>;",
  makeReport: 'declare const makeReport: import("express").RequestHandler;',
  login: 'declare const login: import("express").RequestHandler;',
  handler: 'declare const handler: import("fastify").RouteHandlerMethod;',
  serve: 'declare function serve(response: import("node:http").ServerResponse): void;',
  encoderFor: "declare function encoderFor(model: string): { encode(text: string): number[] };",
  textOf: "declare function textOf(call: unknown): string;",
};

const appOf = (code: string): string =>
  /sluice\/fastify/.test(code)
    ? 'declare const app: import("fastify").FastifyInstance;'
    : 'declare const app: import("express").Application;';

export function compiledFile({ code }: Block): string {
  const imports = code.match(/^import [^;]+;$/gm) ?? [];
  const rest = code.replaceAll(/^import [^;]+;\n/gm, "");
  const isGiven = (name: string): boolean => {
    const uses = new RegExp(`(?<![.\\w"/-])${name}\\b(?!:)`).test(rest);
    const declares = new RegExp(
      `\\b(?:const|let|function|class) ${name}\\b|\\b(?:const|let) \\{[^}]*\\b${name}\\b[^}]*\\} =`,
    ).test(rest);
    return uses && !declares && !imports.some((line) => new RegExp(`\\b${name}\\b`).test(line.split(" from ")[0]!));
  };
  const names = Object.keys(given).filter(isGiven);
  const declarations = [...names.map((name) => given[name]!), ...(isGiven("app") ? [appOf(code)] : [])];
  const body = /^export /m.test(rest)
    ? rest
    : `export async function block(): Promise<unknown> {\n${rest}\nreturn;\n}\n`;
  return [...imports, ...declarations, body].join("\n");
}
