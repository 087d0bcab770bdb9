/** A sortable column header: the first click sorts in the column's natural direction, the second reverses, the third removes the sort. */
interface SortedHeadProps {
  readonly name: string;
  /** As in the URL: `name` or `-name`; "" for none. */
  readonly sort: string;
  readonly isNumber?: boolean;
  readonly onSort: (sort: string) => void;
  readonly children: string;
}

export function SortedHead({ name, sort, isNumber = false, onSort, children }: SortedHeadProps) {
  const order = isNumber ? [`-${name}`, name] : [name, `-${name}`];
  const at = order.indexOf(sort);
  const direction = at < 0 ? "none" : sort.startsWith("-") ? "descending" : "ascending";
  return (
    <th scope="col" className={isNumber ? "number" : undefined} aria-sort={direction}>
      <button type="button" className="sort" onClick={() => onSort(order[at + 1] ?? "")}>
        {children}
        <span aria-hidden="true">{direction === "ascending" ? " ↑" : direction === "descending" ? " ↓" : ""}</span>
      </button>
    </th>
  );
}
