/** Optional parts of a rule: candidate, variants, overrides. Each can be added and removed. */
import type { ReactNode } from "react";
import { useRowFocus } from "../components/row-focus.js";
import { numberOrText, textOrNothing, valueAt, withValue } from "./draft.js";
import { useEditing, useMistake } from "./editing.js";
import { SelectBox, TextBox } from "./form-boxes.js";
import { MatchBox } from "./match-box.js";
import { Numbers } from "./number-boxes.js";

const MOST_SHOWN = 20;

function Part({
  title,
  about,
  isThere,
  mistake,
  onAdd,
  onRemove,
  children,
}: {
  title: string;
  about: string;
  isThere: boolean;
  mistake: string | undefined;
  onAdd: () => void;
  onRemove: () => void;
  children: ReactNode;
}) {
  return (
    <section className="part">
      <div className="toolbar">
        <h3>{title}</h3>
        <button type="button" className="button small" onClick={isThere ? onRemove : onAdd}>
          {isThere ? "Remove" : "Add"}
          <span className="unseen"> {title.toLowerCase()}</span>
        </button>
      </div>
      <p className="soft small">{about}</p>
      {mistake !== undefined && <p className="mistake">{mistake}</p>}
      {isThere && children}
    </section>
  );
}

const sameOr = [
  { value: "", label: "The same" },
  ...["rolling-window", "token-bucket", "gcra", "fixed-window", "sliding-counter", "concurrency"].map((value) => ({
    value,
    label: value,
  })),
];

export function CandidatePart() {
  const { draft, change } = useEditing();
  return (
    <Part
      title="Candidate"
      about="Other numbers on the same traffic, with a counter of their own: reported, never enforced."
      isThere={draft.candidate !== undefined}
      mistake={useMistake("candidate")}
      onAdd={() => change(withValue(draft, ["candidate"], { limit: draft.limit }))}
      onRemove={() => change(withValue(draft, ["candidate"], undefined))}
    >
      <SelectBox path={["candidate", "algorithm"]} label="Candidate's algorithm" options={sameOr} />
      <Numbers prefix={["candidate"]} />
    </Part>
  );
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function VariantsPart() {
  const { draft, change } = useEditing();
  const variants = itemsOf(draft.variants);
  const { list, focusNext } = useRowFocus<HTMLDivElement>(".item");
  const put = (next: readonly unknown[]): void =>
    change(withValue(draft, ["variants"], next.length === 0 ? undefined : next));
  return (
    <Part
      title="Variants"
      about="Shares of the keys, by a stable hash, under numbers of their own."
      isThere={variants.length > 0}
      mistake={useMistake("variants")}
      onAdd={() =>
        put([
          { name: "control", weight: 50 },
          { name: "other", weight: 50, limit: draft.limit },
        ])
      }
      onRemove={() => put([])}
    >
      <div className="rows" ref={list}>
        {variants.slice(0, MOST_SHOWN).map((_, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the place in the list is what the fields are bound to.
          <div className="item" key={at}>
            <div className="pair">
              <TextBox path={["variants", at, "name"]} label={`Variant ${at + 1}, name`} isMono />
              <TextBox
                path={["variants", at, "weight"]}
                label="Weight"
                isMono
                read={numberOrText}
                inputMode="numeric"
              />
              <SelectBox path={["variants", at, "algorithm"]} label="Algorithm" options={sameOr} />
              <TextBox path={["variants", at, "limit"]} label="Limit" isMono read={numberOrText} inputMode="numeric" />
              <TextBox path={["variants", at, "window"]} label="Window" isMono read={textOrNothing} />
            </div>
            <button
              type="button"
              className="button small"
              onClick={() => {
                put(variants.filter((_one, i) => i !== at));
                focusNext(at === 0 ? 0 : at - 1);
              }}
            >
              Remove variant {at + 1}
            </button>
          </div>
        ))}
        <div>
          <button
            type="button"
            className="button small"
            onClick={() => {
              put([...variants, { name: `variant-${variants.length + 1}`, weight: 50 }]);
              focusNext(variants.length);
            }}
          >
            Add variant
          </button>
        </div>
      </div>
    </Part>
  );
}

export function OverridesPart() {
  const { draft, change } = useEditing();
  const overrides = itemsOf(draft.overrides);
  const { list, focusNext } = useRowFocus<HTMLDivElement>(".item");
  const key = itemsOf(draft.key)[0];
  const fresh = { match: { [typeof key === "string" ? key : "user"]: "acme" }, limit: draft.limit };
  const put = (next: readonly unknown[]): void =>
    change(withValue(draft, ["overrides"], next.length === 0 ? undefined : next));
  return (
    <Part
      title="Overrides"
      about="Other numbers for some keys; the first that matches wins."
      isThere={overrides.length > 0}
      mistake={useMistake("overrides")}
      onAdd={() => put([fresh])}
      onRemove={() => put([])}
    >
      <div className="rows" ref={list}>
        {overrides.slice(0, MOST_SHOWN).map((_, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the place in the list is what the fields are bound to.
          <div className="item" key={at}>
            <MatchBox path={["overrides", at, "match"]} label={`Override ${at + 1}, applies to`} />
            <div className="pair">
              <TextBox path={["overrides", at, "limit"]} label="Limit" isMono read={numberOrText} inputMode="numeric" />
              {valueAt(draft, ["algorithm"]) !== "concurrency" && (
                <TextBox path={["overrides", at, "window"]} label="Window" isMono read={textOrNothing} />
              )}
            </div>
            <button
              type="button"
              className="button small"
              onClick={() => {
                put(overrides.filter((_one, i) => i !== at));
                focusNext(at === 0 ? 0 : at - 1);
              }}
            >
              Remove override {at + 1}
            </button>
          </div>
        ))}
        {overrides.length > MOST_SHOWN && (
          <p className="soft small">{overrides.length - MOST_SHOWN} more stand in the YAML.</p>
        )}
        <div>
          <button
            type="button"
            className="button small"
            onClick={() => {
              put([...overrides, fresh]);
              focusNext(overrides.length);
            }}
          >
            Add override
          </button>
        </div>
      </div>
    </Part>
  );
}
