/** The URL's raw query. wouter's default hook decodes it once more: a key `%2e` would become `.`, which is a different key. */
export { useSearch } from "wouter/use-browser-location";
