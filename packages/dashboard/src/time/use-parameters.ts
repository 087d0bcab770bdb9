/** URL parameters other than the frame's: filters, sort, page. Typing replaces the current history entry. */
import { useLocation } from "wouter";
import { useSearch } from "./use-search.js";
import { SETS_FRAME } from "./use-time.js";

type Parameters = Readonly<Record<string, string | undefined>>;

export function useParameters(): { search: string; set(changes: Parameters, how?: { replace: boolean }): void } {
  const search = useSearch();
  const [location, navigate] = useLocation();
  return {
    search,
    set(changes, { replace } = { replace: false }) {
      const params = new URLSearchParams(search);
      for (const [name, value] of Object.entries(changes)) {
        if (value === undefined || value === "") params.delete(name);
        else params.set(name, value);
      }
      const text = params.toString();
      navigate(text === "" ? location : `${location}?${text}`, { replace, state: SETS_FRAME });
    },
  };
}
