/**
 * Full-text search over the sections of all pages. Loaded when the field is first used; the index is built here, since its texts are needed
 * for the excerpts anyway and are smaller than a stored index.
 * In: a query. Out: sections, best first, with an excerpt.
 */
import MiniSearch from "minisearch";

/** [url, page, heading, text] */
type Row = readonly [string, string, string, string];

export interface Found {
  readonly url: string;
  readonly page: string;
  readonly heading: string;
  /** Text around the first word that was found, and where that word lies in it. */
  readonly excerpt: string;
}

const MOST = 8;

export async function loadSearch(url: string): Promise<(query: string) => Found[]> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  const rows = (await answer.json()) as Row[];
  const index = new MiniSearch({
    fields: ["page", "heading", "text"],
    searchOptions: { prefix: true, fuzzy: 0.15, combineWith: "AND", boost: { page: 3, heading: 5 } },
  });
  index.addAll(rows.map(([, page, heading, text], id) => ({ id, page, heading, text })));
  return (query) =>
    index
      .search(query)
      .slice(0, MOST)
      .map(({ id, terms }) => {
        const [target, page, heading, text] = rows[Number(id)]!;
        return { url: target, page, heading, excerpt: excerptOf(text, terms) };
      });
}

const EXCERPT = 110;

function excerptOf(text: string, terms: readonly string[]): string {
  const plain = text.toLowerCase();
  const places = terms.map((term) => plain.indexOf(term)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, text.length) - 30);
  const from = places.length === 0 ? 0 : start === 0 ? 0 : text.indexOf(" ", start) + 1;
  const shown = text.slice(from, from + EXCERPT);
  return `${from > 0 ? "… " : ""}${shown}${from + EXCERPT < text.length ? " …" : ""}`;
}
