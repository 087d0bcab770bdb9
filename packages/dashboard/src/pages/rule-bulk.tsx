/** Changes the selected rules at once: enable, shadow, disable, tag. Uses the same dialog as every change, and creates one version. */
import { useState } from "react";
import { Field } from "../components/controls.js";
import { Dialog } from "../components/dialog.js";
import { count } from "../components/format.js";
import { toast } from "../components/toast.js";
import { ChangeDialog } from "../rule-editor/change-dialog.js";

/** The service's maximum per call. */
const MOST = 900;

interface BulkBody {
  readonly ids: readonly string[];
  readonly mode?: "enforce" | "shadow" | "off";
  readonly addTags?: readonly string[];
  readonly removeTags?: readonly string[];
}

interface BulkBarProps {
  readonly chosen: ReadonlySet<string>;
  readonly version: number;
  readonly onClear: () => void;
}

const modes = [
  { mode: "enforce", verb: "Enable" },
  { mode: "shadow", verb: "Shadow" },
  { mode: "off", verb: "Disable" },
] as const;

export function BulkBar({ chosen, version, onClear }: BulkBarProps) {
  const [change, setChange] = useState<{ verb: string; body: BulkBody }>();
  const [isTagging, setIsTagging] = useState(false);
  const ids = [...chosen];
  const what = chosen.size === 1 ? "1 rule" : `${count(chosen.size)} rules`;
  const isTooMany = chosen.size > MOST;
  return (
    <section className="bulk" aria-label="Chosen rules">
      <strong>{what} chosen</strong>
      <div className="buttons">
        {modes.map(({ mode, verb }) => (
          <button
            key={mode}
            type="button"
            className="button small"
            disabled={isTooMany}
            onClick={() => setChange({ verb, body: { ids, mode } })}
          >
            {verb}
          </button>
        ))}
        <button type="button" className="button small" disabled={isTooMany} onClick={() => setIsTagging(true)}>
          Tag …
        </button>
        <button type="button" className="button small" onClick={onClear}>
          Choose none
        </button>
      </div>
      {isTooMany && <span className="soft small">At most {count(MOST)} rules are changed at once.</span>}
      {isTagging && (
        <TagDialog
          what={what}
          onClose={() => setIsTagging(false)}
          onTag={(part) => {
            setIsTagging(false);
            setChange({ verb: "Tag", body: { ids, ...part } });
          }}
        />
      )}
      {change !== undefined && (
        <ChangeDialog
          title={`${change.verb} ${what}`}
          verb={change.verb}
          change={{ method: "POST", path: "/rules", body: change.body, base: version }}
          onClose={() => setChange(undefined)}
          onDone={({ version: made }) => {
            setChange(undefined);
            onClear();
            toast(`${what} changed, as version ${made}.`, { version: made });
          }}
        />
      )}
    </section>
  );
}

type TagPart = Pick<BulkBody, "addTags" | "removeTags">;

function TagDialog({ what, onClose, onTag }: { what: string; onClose: () => void; onTag: (part: TagPart) => void }) {
  const [tag, setTag] = useState("");
  const [isAdded, setIsAdded] = useState(true);
  const isTag = /^[a-z0-9][a-z0-9\-_.:]{0,31}$/.test(tag);
  return (
    <Dialog
      title={`Tag ${what}`}
      onClose={onClose}
      onSubmit={() => isTag && onTag(isAdded ? { addTags: [tag] } : { removeTags: [tag] })}
      footer={
        <button type="submit" className="button main" disabled={!isTag}>
          Review
        </button>
      }
    >
      <Field label="Tag" hint="Lower-case letters, digits and - _ . : such as team:web">
        {(control) => (
          <input {...control} className="input mono" value={tag} onChange={(event) => setTag(event.target.value)} />
        )}
      </Field>
      <label>
        <input type="checkbox" checked={!isAdded} onChange={() => setIsAdded(!isAdded)} /> Take it away
      </label>
    </Dialog>
  );
}
