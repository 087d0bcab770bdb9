/**
 * The fenced blocks of the documentation, with what the fence says of them: its language and a mark.
 * In: markdown. Out: blocks in order, with page and line.
 *
 * Marks: `background` starts a service that lasts as long as the page; `run` runs a block of a page whose blocks are otherwise only checked;
 * `not-run` is for what no test here can run.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Block {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  readonly mark: string;
  readonly code: string;
}

export const docPages: readonly string[] = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  .map((file) => `docs/${file.replaceAll("\\", "/")}`)
  .filter((file) => file.endsWith(".md"))
  .sort();

export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), "utf8");
  return Array.from(text.matchAll(/^( *)```([\w-]*) *([\w-]*)\n([\s\S]*?)^ *```$/gm), (found) => {
    const [, indent, language, mark, code] = found;
    return {
      page,
      line: text.slice(0, found.index).split("\n").length,
      language: language!,
      mark: mark!,
      code: code!.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    };
  });
}

export const placeOf = ({ page, line }: Block): string => `${page}:${line}`;
