/** Inputs for an algorithm's numbers: limit, window and others. */
import { fieldValue } from "../components/format.js";
import { algorithmFields, numberOrText, textOrNothing, valueAt } from "./draft.js";
import { useEditing } from "./editing.js";
import { SelectBox, TextBox } from "./form-boxes.js";

type Options = readonly { readonly value: string; readonly label: string }[];

const labels: Readonly<Record<string, { label: string; hint?: string }>> = {
  limit: { label: "Limit" },
  window: { label: "Window", hint: "ms s m h d, such as 90s" },
  burst: { label: "Burst", hint: "How many at once; the limit if empty" },
  minInterval: { label: "Least distance", hint: "Between two that pass, such as 50ms" },
  ttl: { label: "Lease lasts", hint: "30s if empty" },
  prefetch: { label: "Prefetch", hint: "Decided in process for so long, such as 20ms" },
  timezone: { label: "Time zone", hint: "Such as Europe/Berlin" },
  fairBy: { label: "Fair by", hint: "Attribute whose greedy values are shed first, such as tenant" },
};

const boxes = { ...labels, storage: true, align: true };

const storages: Options = [
  { value: "", label: "Packed" },
  { value: "sorted-set", label: "Sorted set" },
];
const aligns: Options = [
  { value: "", label: "The epoch" },
  { value: "calendar", label: "The calendar" },
];

/** The numbers of the selected algorithm; below `candidate` those of the candidate. */
export function Numbers({ prefix }: { prefix: readonly (string | number)[] }) {
  const { draft } = useEditing();
  const own = valueAt(draft, [...prefix, "algorithm"]);
  const algorithm = typeof own === "string" ? own : String(draft.algorithm);
  const isLive = prefix.length === 0;
  // In a candidate, empty means "same as live".
  const orSame = ([first, ...rest]: Options): Options => [isLive ? first! : { value: "", label: "The same" }, ...rest];
  const isCalendar = valueAt(draft, [...prefix, "align"]) === "calendar";
  // Lists and objects have no input: edit them in the YAML.
  const names = (algorithmFields[algorithm] ?? []).filter(
    (name) => (name !== "timezone" || isCalendar) && Object.hasOwn(boxes, name),
  );
  return (
    <div className="pair">
      {names.map((name) => {
        const path = [...prefix, name];
        if (name === "storage")
          return <SelectBox key={name} path={path} label="Stored as" options={orSame(storages)} />;
        if (name === "align") {
          return <SelectBox key={name} path={path} label="Windows begin with" options={orSame(aligns)} />;
        }
        const isNumber = name === "limit" || name === "burst";
        return (
          <TextBox
            key={name}
            path={path}
            {...(isLive ? labels[name]! : { label: labels[name]!.label, placeholder: fieldValue(draft[name] ?? "") })}
            isMono
            read={isNumber ? numberOrText : textOrNothing}
            inputMode={isNumber ? "numeric" : "text"}
          />
        );
      })}
    </div>
  );
}
