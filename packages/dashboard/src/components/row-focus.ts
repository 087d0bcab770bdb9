/**
 * Keeps the focus inside a list of rows: a new row gets it, and after a removal the row before it or, without any, the
 * button that adds. Otherwise the focus falls back to the top of the page, and keyboard users start over.
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
