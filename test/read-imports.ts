/**
 * Reads the import lines of a source file, without a compiler: TypeScript 7 has no API for it.
 * In: the text of a file. Out: what it imports or re-exports, and whether only types come over.
 * Sees static imports that start a line, as the formatter leaves them, and `import("…")` anywhere outside a comment line.
 */

export interface Import {
  readonly from: string;
  readonly typesOnly: boolean;
}

const STATIC =
  /^(?:import|export)\s+(type\s+)?(?:(\*(?:\s+as\s+\w+)?|\w+|(?:\w+\s*,\s*)?\{[^}]*\})\s+from\s+)?"([^"]+)"/gm;
const DYNAMIC = /^(?!\s*(?:\*|\/\/|\/\*)).*?\bimport\(\s*"([^"]+)"/gm;

export function readImports(source: string): Import[] {
  const statics = [...source.matchAll(STATIC)].map(([, type, names, from]) => ({
    from: from!,
    typesOnly: type !== undefined || namesOnlyTypes(names ?? ""),
  }));
  const dynamics = [...source.matchAll(DYNAMIC)].map(([, from]) => ({ from: from!, typesOnly: false }));
  return [...statics, ...dynamics];
}

/** `{ type A, type B }` */
function namesOnlyTypes(names: string): boolean {
  const inner = names.match(/^\{([^}]*)\}$/)?.[1];
  if (inner === undefined) return false;
  const list = inner.split(",").map((name) => name.trim());
  return list.filter((name) => name !== "").every((name) => name.startsWith("type "));
}
