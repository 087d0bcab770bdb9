/**
 * The body of a table with possibly hundreds of rows (`table.long`): renders a screenful at once, then more with each frame. Rows should be
 * memo components, since every frame re-renders the body.
 */
import { type ReactNode, useMemo } from "react";
import { useGrowing } from "./use-growing.js";

interface LongRowsProps<Row> {
  readonly rows: readonly Row[];
  /** Must be a stable function. */
  readonly nameOf: (row: Row) => string;
  readonly children: (row: Row, name: string) => ReactNode;
}

export function LongRows<Row>({ rows, nameOf, children }: LongRowsProps<Row>) {
  const names = useMemo(() => rows.map(nameOf), [rows, nameOf]);
  const shown = useGrowing(names);
  return <tbody>{rows.slice(0, shown).map((row, i) => children(row, names[i]!))}</tbody>;
}
