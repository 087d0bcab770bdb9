/** A rule as a form. What it has no box for (refill, an attribute as cost) is kept, and is written in the YAML beside it. */

import { fieldValue } from "../components/format.js";
import { algorithmFields, listOf, numberOrText, textOrNothing, valueAt, withAlgorithm } from "./draft.js";
import { useEditing } from "./editing.js";
import { ListBox, SelectBox, TextBox } from "./form-boxes.js";
import { MatchBox } from "./match-box.js";
import { CandidatePart, OverridesPart, VariantsPart } from "./rule-form-parts.js";

const algorithms = [
  { value: "rolling-window", label: "Rolling window: exact over any stretch of time" },
  { value: "token-bucket", label: "Token bucket: bursts, then an even refill" },
  { value: "gcra", label: "GCRA: evenly spaced, with a burst" },
  { value: "fixed-window", label: "Fixed window: counts from the clock's hour or day" },
  { value: "sliding-counter", label: "Sliding counter: approximate, cheap" },
  { value: "concurrency", label: "Concurrency: places held at once" },
];

const modes = [
  { value: "", label: "Enforce" },
  { value: "shadow", label: "Shadow: counted and told, never refuses" },
  { value: "off", label: "Off" },
];

const failures = [
  { value: "", label: "Count here alone" },
  { value: "allow", label: "Allow" },
  { value: "deny", label: "Refuse" },
];

export function RuleForm() {
  const { isNew } = useEditing();
  return (
    <div className="rule-form">
      {isNew && (
        <TextBox path="id" label="Id" hint="Lower-case letters, digits and - _ .; it cannot be changed later." isMono />
      )}
      <TextBox path="description" label="Description" />
      <MatchBox
        path="match"
        label="Applies to"
        hint="All must hold; none means every request. Globs: * within a segment, ** across. Alternatives with “ | ” between."
      />
      <ListBox
        path="key"
        label="Counted by"
        hint="Attributes, with commas between; none counts all requests together."
        read={listOf}
      />
      <AlgorithmBox />
      <Numbers prefix={[]} />
      <div className="pair">
        <SelectBox path="mode" label="Mode" options={modes} />
        <SelectBox path="onStoreFailure" label="Without the store" options={failures} />
      </div>
      <CandidatePart />
      <VariantsPart />
      <OverridesPart />
    </div>
  );
}

function AlgorithmBox() {
  const { draft, change } = useEditing();
  return (
    <SelectBox
      path="algorithm"
      label="Algorithm"
      options={algorithms}
      onChange={(algorithm) => change(withAlgorithm(draft, algorithm))}
    />
  );
}

type Options = readonly { readonly value: string; readonly label: string }[];

const labels: Readonly<Record<string, { label: string; hint?: string }>> = {
  limit: { label: "Limit" },
  window: { label: "Window", hint: "ms s m h d, such as 90s" },
  burst: { label: "Burst", hint: "How many at once; the limit if empty" },
  minInterval: { label: "Least distance", hint: "Between two that pass, such as 50ms" },
  ttl: { label: "Lease lasts", hint: "30s if empty" },
  timezone: { label: "Time zone", hint: "Such as Europe/Berlin" },
};

const storages: Options = [
  { value: "", label: "Packed" },
  { value: "sorted-set", label: "Sorted set" },
];
const aligns: Options = [
  { value: "", label: "The epoch" },
  { value: "calendar", label: "The calendar" },
];

/** The numbers that the algorithm in force knows; below `candidate` those of the candidate. */
export function Numbers({ prefix }: { prefix: readonly (string | number)[] }) {
  const { draft } = useEditing();
  const own = valueAt(draft, [...prefix, "algorithm"]);
  const algorithm = typeof own === "string" ? own : String(draft.algorithm);
  const isLive = prefix.length === 0;
  // Beside the live numbers, an empty box means the same as there.
  const orSame = ([first, ...rest]: Options): Options => [isLive ? first! : { value: "", label: "The same" }, ...rest];
  const isCalendar = valueAt(draft, [...prefix, "align"]) === "calendar";
  const names = (algorithmFields[algorithm] ?? []).filter((name) => name !== "timezone" || isCalendar);
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
