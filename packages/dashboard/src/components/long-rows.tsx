/**
 * The body of a table that may have hundreds of rows (`table.long`): a screenful at once, some more with each frame. Rows should be memo
 * components, since each frame draws the body anew.
 */
import { type ReactNode, useMemo } from "react";
import { useGrowing } from "./use-growing.js";

interface LongRowsProps<Row> {
  readonly rows: readonly Row[];
  /** The same function at every call. */
  readonly nameOf: (row: Row) => string;
  readonly children: (row: Row, name: string) => ReactNode;
}

export function LongRows<Row>({ rows, nameOf, children }: LongRowsProps<Row>) {
  const names = useMemo(() => rows.map(nameOf), [rows, nameOf]);
  const shown = useGrowing(names);
  return <tbody>{rows.slice(0, shown).map((row, i) => children(row, names[i]!))}</tbody>;
}
