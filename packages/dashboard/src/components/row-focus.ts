/**
 * Manages focus in an editable list: a new row gets it; after a removal the previous row gets it, or the Add button. Otherwise focus would
 * fall back to the top of the page.
 */
import { useEffect, useRef, useState } from "react";

export function useRowFocus<T extends HTMLElement = HTMLFormElement>(rowsAre = ".attribute-row") {
  const list = useRef<T>(null);
  const [wanted, setWanted] = useState<{ row: number }>();
  useEffect(() => {
    if (wanted === undefined) return;
    const rows = list.current?.querySelectorAll<HTMLElement>(rowsAre) ?? [];
    const row = rows[Math.min(wanted.row, rows.length - 1)];
    const target = row?.querySelector<HTMLElement>("input") ?? list.current?.querySelector<HTMLElement>("[data-adds]");
    target?.focus();
  }, [wanted, rowsAre]);
  return { list, focusNext: (row: number) => setWanted({ row }) };
}
