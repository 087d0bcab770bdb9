/**
 * The ids of headings, as GitHub makes them: links that work in the repository work on the site. Pure.
 */

/** @returns {(heading: string) => string} For one page: a heading that comes twice gets a number. */
export function anchorMaker() {
  /** @type {Map<string, number>} */
  const used = new Map();
  return (heading) => {
    const anchor = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-");
    const times = used.get(anchor) ?? 0;
    used.set(anchor, times + 1);
    return times === 0 ? anchor : `${anchor}-${times}`;
  };
}
