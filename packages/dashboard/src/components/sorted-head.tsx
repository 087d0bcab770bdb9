/** The head of a column that sorts: the first click in its natural direction, the next the other way, the third as it came. */
interface SortedHeadProps {
  readonly name: string;
  /** As in the address: `name` or `-name`; "" for none. */
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
