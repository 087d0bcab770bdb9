/**
 * The address's search as it stands. wouter's own hook decodes it once more: a key `%2e` would be read as `.`, which is another key.
 */
export { useSearch } from "wouter/use-browser-location";
