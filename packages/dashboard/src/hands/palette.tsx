/** The command palette: a single box to reach every page, rule and key. A combobox: arrows select, Enter opens, Escape closes. */
import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useDeferredValue, useEffect, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { rulesQuery, topKeysQuery } from "../api/queries.js";
import { visible } from "../components/format.js";
import { useModal } from "../components/use-modal.js";
import { groups } from "../shell/navigation.js";
import { openHand } from "../shell/open-hand.js";
import { useMay } from "../shell/session.js";
import { type Entry, findEntries, keyEntry, typedKey } from "./palette-entries.js";

const LIST = "palette-list";
const optionId = (at: number): string => `palette-${at}`;

export function Palette() {
  const modal = useModal(() => openHand(undefined));
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const found = useFound(useDeferredValue(typed));
  const at = Math.min(chosen, found.length - 1);
  useEffect(() => {
    document.getElementById(optionId(at))?.scrollIntoView({ block: "nearest" });
  }, [at]);
  const go = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    // Close first: closing restores focus, and would take it back from the new page.
    modal.close();
    if (entry.to === undefined) openHand("keys");
    else navigate(entry.to);
  };
  const press = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by !== 0 && found.length > 0) setChosen((at + by + found.length) % found.length);
    else if (event.key === "Enter" && !event.nativeEvent.isComposing) go(found[at]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog className="box palette" aria-label="Go to" {...modal.props}>
      <div>
        <input
          className="input"
          role="combobox"
          aria-label="A page, a rule or a key"
          aria-expanded={found.length > 0}
          aria-controls={LIST}
          aria-autocomplete="list"
          {...(found.length > 0 && { "aria-activedescendant": optionId(at) })}
          placeholder="A page, a rule, a key, or user=42 …"
          autoComplete="off"
          spellCheck={false}
          maxLength={200}
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setChosen(0);
          }}
          onKeyDown={press}
        />
        {found.length === 0 ? (
          <p className="soft" role="status">
            Nothing of that name. Attributes (user=42) lead to a key that is not listed.
          </p>
        ) : (
          <div className="found" role="listbox" id={LIST} aria-label="Found">
            {found.map((entry, i) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the box above has the focus and the keys.
              // biome-ignore lint/a11y/useFocusableInteractive: an option of a combobox is named by aria-activedescendant.
              <div
                key={`${entry.kind} ${entry.to}`}
                role="option"
                id={optionId(i)}
                aria-selected={i === at}
                onClick={() => go(entry)}
              >
                <span>{entry.label}</span>
                <span className="soft small">{entry.kind}</span>
              </div>
            ))}
          </div>
        )}
      </div>
    </dialog>
  );
}

function useFound(typed: string): Entry[] {
  const isAdmin = useMay("admin");
  const rules = useQuery(rulesQuery).data?.rules;
  const words = typed.trim();
  const { data: top } = useQuery({
    ...topKeysQuery({ time: { range: "1h" }, by: "traffic", group: "client", limit: 6, search: words }),
    enabled: words.length > 1,
  });
  const places = useMemo(
    (): Entry[] => [
      ...groups
        .flatMap((group) => group.places)
        .filter(({ to }) => to !== "/tokens" || isAdmin)
        .map(({ to, label }): Entry => ({ kind: "Page", label, to })),
      { kind: "Help", label: "Keyboard shortcuts" },
      ...(rules ?? []).map(
        ({ id, description = "" }): Entry => ({
          kind: "Rule",
          label: id,
          about: visible(description),
          to: `/rules/${id}`,
        }),
      ),
    ],
    [rules, isAdmin],
  );
  return useMemo(() => {
    const key = typedKey(words);
    const keys = [
      ...(key === undefined ? [] : [keyEntry(key)]),
      // Truncated values would lead to another key.
      ...(words.length > 1 ? (top?.keys ?? []) : [])
        .filter(({ digest }) => digest === undefined)
        .map(({ attributes }) => keyEntry(attributes)),
    ];
    const known = new Set<string>();
    const own = keys.filter(({ to }) => !known.has(to!) && known.add(to!));
    return key === undefined ? [...findEntries(places, words), ...own] : [...own, ...findEntries(places, words)];
  }, [places, top, words]);
}
