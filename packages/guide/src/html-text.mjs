/** Text that stands in HTML, and HTML as text. Pure. */

/** @param {string} text */
export function escapeHtml(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** @param {string} html Made by the renderer: no comments, no scripts. */
export function textOf(html) {
  return html
    .replace(/<\/?(?:span|code|strong|em|a|b|small)\b[^>]*>/g, "")
    .replace(/<[^>]+>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")
    .replace(/\s+/g, " ")
    .trim();
}
