/** Parses nginx's configuration grammar: directives, their arguments, their blocks. Pure; knows no specific directives. */
export interface Directive {
  readonly name: string;
  readonly args: readonly string[];
  readonly block?: readonly Directive[];
  readonly line: number;
}

/** nginx itself nests six deep. */
const MOST_DEPTH = 32;
/** Throws an error with the line if the syntax is invalid. */
export function parseNginx(text: string): Directive[] {
  const tokens = tokensOf(text);
  let at = 0;
  const block = (depth: number): Directive[] => {
    if (depth > MOST_DEPTH) throw new Error(`line ${tokens[at]?.line}: blocks are nested too deep`);
    const directives: Directive[] = [];
    for (;;) {
      const first = tokens[at];
      if (first === undefined) {
        if (depth > 0) throw new Error("the end came before a }");
        return directives;
      }
      at++;
      if (first.sign === "}") {
        if (depth === 0) throw new Error(`line ${first.line}: a } without its {`);
        return directives;
      }
      if (first.sign === ";") continue;
      const args: string[] = [];
      while (tokens[at] !== undefined && tokens[at]!.sign === undefined) args.push(tokens[at++]!.text);
      const end = tokens[at++];
      if (end === undefined || end.sign === "}") throw new Error(`line ${first.line}: ${first.text} has no ; or {`);
      const { text: name, line } = first;
      directives.push(end.sign === "{" ? { name, args, block: block(depth + 1), line } : { name, args, line });
    }
  };
  return block(0);
}

interface Token {
  readonly text: string;
  readonly sign?: string;
  readonly line: number;
}

/** A single pass: linear even for a hostile file. */
function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  let at = 0;
  while (at < text.length) {
    const character = text[at]!;
    if (character === "\n") line++;
    if (/\s/.test(character)) at++;
    else if (character === "#") at = endOf(text.indexOf("\n", at), text);
    else if ("{};".includes(character)) {
      tokens.push({ text: character, sign: character, line });
      at++;
    } else {
      const word = wordAt(text, at, line);
      tokens.push({ text: word.text, line });
      for (let i = at; i < word.end; i++) if (text[i] === "\n") line++;
      at = word.end;
    }
  }
  return tokens;
}

function endOf(found: number, text: string): number {
  return found < 0 ? text.length : found;
}

/** A quoted word, or one up to the next space or punctuation; `${name}` is part of a word. */
function wordAt(text: string, from: number, line: number): { text: string; end: number } {
  const quote = text[from] === '"' || text[from] === "'" ? text[from] : undefined;
  let word = "";
  for (let at = quote === undefined ? from : from + 1; at < text.length; at++) {
    const character = text[at]!;
    if (character === quote) return { text: word, end: at + 1 };
    if (quote === undefined && /[\s;{}]/.test(character)) return { text: word, end: at };
    // Other escapes belong to the directive: `\.` is part of a regular expression.
    if (character === "\\" && /["'\\\s]/.test(text[at + 1] ?? "")) word += text[++at];
    else if (character === "$" && text[at + 1] === "{") {
      const end = text.indexOf("}", at);
      if (end < 0) throw new Error(`line ${line}: a variable has no }`);
      word += text.slice(at, end + 1);
      at = end;
    } else word += character;
  }
  if (quote !== undefined) throw new Error(`line ${line}: a quoted word has no end`);
  return { text: word, end: text.length };
}
