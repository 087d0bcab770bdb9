/** A rule as a form. Fields without an input (refill, an attribute as cost) stay in the draft; edit them in the YAML. */

import { listOf, withAlgorithm } from "./draft.js";
import { useEditing } from "./editing.js";
import { ListBox, SelectBox, TextBox } from "./form-boxes.js";
import { MatchBox } from "./match-box.js";
import { Numbers } from "./number-boxes.js";
import { CandidatePart, OverridesPart, VariantsPart } from "./rule-form-parts.js";

const algorithms = [
  { value: "rolling-window", label: "Rolling window: exact over any stretch of time" },
  { value: "token-bucket", label: "Token bucket: bursts, then an even refill" },
  { value: "gcra", label: "GCRA: evenly spaced, with a burst" },
  { value: "fixed-window", label: "Fixed window: aligned to the clock's hour or day" },
  { value: "sliding-counter", label: "Sliding counter: approximate, cheap" },
  { value: "concurrency", label: "Concurrency: places held at once" },
  { value: "load-shedding", label: "Load shedding: by how busy the server is" },
];

const modes = [
  { value: "", label: "Enforce" },
  { value: "shadow", label: "Shadow: decided and reported, never refuses" },
  { value: "off", label: "Off" },
];

const failures = [
  { value: "", label: "Count here alone" },
  { value: "allow", label: "Allow" },
  { value: "deny", label: "Refuse" },
];

export function RuleForm() {
  const { isNew, draft } = useEditing();
  const counts = draft.algorithm !== "load-shedding";
  return (
    <div className="rule-form">
      {isNew && (
        <TextBox path="id" label="Id" hint="Lower-case letters, digits and - _ .; it cannot be changed later." isMono />
      )}
      <TextBox path="description" label="Description" />
      <ListBox
        path="tags"
        label="Tags"
        hint="Words to find and group rules by, with commas between, such as team:web."
        read={listOf}
        isOptional
      />
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
        {counts && <SelectBox path="onStoreFailure" label="Without the store" options={failures} />}
      </div>
      {counts ? (
        <>
          <CandidatePart />
          <VariantsPart />
          <OverridesPart />
        </>
      ) : (
        <p className="soft small">Signals and classes are edited in the YAML: signal, class, classes.</p>
      )}
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
