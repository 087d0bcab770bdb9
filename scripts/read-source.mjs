/**
 * Parses a source file (oxc, which comes with vite): its imports, its exports and its functions.
 * In: a file's name, which chooses between TypeScript, TSX and JavaScript, and its text. Out: plain lists.
 * The architecture tests, the tidy test and the generator of docs/architecture.md share it, so that all see the same code.
 */
import { parseSync, Visitor } from "vite";

/**
 * @typedef {object} Import
 * @property {string} from The specifier as written.
 * @property {boolean} typesOnly True if the import vanishes at run time.
 * @property {readonly string[]} names Names as the other file exports them; "*" stands for all of them.
 *
 * @typedef {object} Export
 * @property {string} name
 * @property {boolean} isType
 *
 * @typedef {object} FunctionSpan
 * @property {string} name
 * @property {number} line The first line, counted from 1.
 * @property {number} lines
 * @property {boolean} isAsync
 *
 * @typedef {object} Source
 * @property {readonly Import[]} imports Re-exports and dynamic imports included.
 * @property {readonly Export[]} exports Declared here; re-exports are imports.
 * @property {readonly FunctionSpan[]} functions Methods and arrow functions included.
 * @property {ReadonlyMap<string, number>} identifiers How often each identifier occurs.
 */

/**
 * @param {string} file
 * @param {string} text
 * @returns {Source}
 */
export function readSource(file, text) {
  const { program, module, errors } = parseSync(file, text);
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  const walked = walk(program, text);
  return {
    imports: [...staticImports(module), ...walked.imports],
    exports: module.staticExports
      .flatMap(({ entries }) => entries)
      .filter(({ moduleRequest }) => moduleRequest === null)
      .map(({ exportName, isType }) => ({ name: exportName.name ?? "default", isType })),
    functions: walked.functions,
    identifiers: walked.identifiers,
  };
}

/**
 * @param {import("vite").ParseResult["module"]} module
 * @returns {Import[]}
 */
function staticImports({ staticImports: imports, staticExports }) {
  const plain = imports.map(({ moduleRequest, entries }) => ({
    from: moduleRequest.value,
    typesOnly: entries.length > 0 && entries.every(({ isType }) => isType),
    names: entries.map(({ importName }) => (importName.kind === "Default" ? "default" : (importName.name ?? "*"))),
  }));
  const again = staticExports.flatMap(({ entries }) =>
    entries.flatMap(({ moduleRequest, importName, isType }) =>
      moduleRequest === null ? [] : [{ from: moduleRequest.value, typesOnly: isType, names: [importName.name ?? "*"] }],
    ),
  );
  return [...plain, ...again];
}

/**
 * @param {import("vite").ParseResult["program"]} program
 * @param {string} text
 */
function walk(program, text) {
  /** @type {Import[]} */
  const imports = [];
  /** Start of an `import("…")` expression -> the names that its surroundings take from it. @type {Map<number, string[]>} */
  const taken = new Map();
  /** @type {FunctionSpan[]} */
  const functions = [];
  /** Start of a function -> the name of the variable, property or method that holds it. @type {Map<number, string>} */
  const holders = new Map();
  /** @type {Map<string, number>} */
  const identifiers = new Map();

  /** @param {{ start: number, end: number, async: boolean }} node @param {string} [name] */
  const addFunction = ({ start, end, async: isAsync }, name) => {
    const line = lineAt(text, start);
    const lines = lineAt(text, end) - line + 1;
    functions.push({ name: name ?? holders.get(start) ?? "(anonymous)", line, lines, isAsync });
  };
  /** @param {{ name: string }} identifier */
  const count = ({ name }) => identifiers.set(name, (identifiers.get(name) ?? 0) + 1);

  new Visitor({
    VariableDeclarator({ id, init }) {
      if (init === null) return;
      if (id.type === "Identifier") holders.set(init.start, id.name);
      if (id.type === "ObjectPattern" && init.type === "AwaitExpression" && init.argument.type === "ImportExpression") {
        const keys = id.properties.map((property) => (property.type === "Property" ? nameOf(property.key) : "*"));
        taken.set(init.argument.start, keys);
      }
    },
    MemberExpression({ object, property }) {
      const awaited = object.type === "ParenthesizedExpression" ? object.expression : object;
      if (awaited.type !== "AwaitExpression" || awaited.argument.type !== "ImportExpression") return;
      taken.set(awaited.argument.start, [nameOf(property)]);
    },
    Property({ key, value }) {
      holders.set(value.start, nameOf(key));
    },
    MethodDefinition({ key, value }) {
      holders.set(value.start, nameOf(key));
    },
    PropertyDefinition({ key, value }) {
      if (value !== null) holders.set(value.start, nameOf(key));
    },
    FunctionDeclaration(node) {
      addFunction(node, node.id?.name);
    },
    FunctionExpression(node) {
      addFunction(node, node.id?.name);
    },
    ArrowFunctionExpression(node) {
      addFunction(node);
    },
    ImportExpression({ start, source }) {
      if (source.type !== "Literal" || typeof source.value !== "string") return;
      imports.push({ from: source.value, typesOnly: false, names: taken.get(start) ?? ["*"] });
    },
    TSImportType({ source, qualifier }) {
      if (typeof source.value !== "string") return;
      const name = qualifier?.type === "Identifier" ? qualifier.name : "*";
      imports.push({ from: source.value, typesOnly: true, names: [name] });
    },
    Identifier: count,
    JSXIdentifier: count,
  }).visit(program);
  return { imports, functions, identifiers };
}

/** @param {{ type: string, name?: unknown, value?: unknown }} key @returns {string} */
function nameOf({ type, name, value }) {
  return type === "Literal" ? String(value) : String(name ?? "*");
}

/**
 * @param {string} text
 * @param {number} offset
 */
function lineAt(text, offset) {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}
