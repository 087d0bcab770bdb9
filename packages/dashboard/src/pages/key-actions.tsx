/** What editors can do to a key under a rule: block it, or give it its own limit by an override. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { rulesQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import type { ExplainedRule, Rule } from "../api/shapes.js";
import { Field } from "../components/controls.js";
import { Dialog } from "../components/dialog.js";
import { AttributeList } from "../components/figures.js";
import { visible } from "../components/format.js";
import { Notice, ProblemNotice } from "../components/panel.js";
import { toast } from "../components/toast.js";
import { ChangeDialog } from "../rule-editor/change-dialog.js";
import { describeNumbers } from "../rule-editor/describe-rule.js";

interface KeyActionsProps {
  readonly explained: ExplainedRule;
  readonly attributes: Readonly<Record<string, string>>;
}

export function KeyActions({ explained, attributes }: KeyActionsProps) {
  const { data } = useQuery(rulesQuery);
  const [isBlocking, setIsBlocking] = useState(false);
  const [isOverriding, setIsOverriding] = useState(false);
  const rule = data?.rules.find(({ id }) => id === explained.rule);
  if (rule === undefined || rule.key.length === 0 || rule.algorithm === "load-shedding") return null;
  const canBlock = "blockFor" in rule && rule.blockFor !== undefined;
  return (
    <>
      {canBlock && (
        <button type="button" className="button small" onClick={() => setIsBlocking(true)}>
          Block<span className="unseen"> under {rule.id}</span>
        </button>
      )}
      <button type="button" className="button small" onClick={() => setIsOverriding(true)}>
        Add override<span className="unseen"> to {rule.id}</span>
      </button>
      {isBlocking && <BlockDialog rule={rule.id} attributes={attributes} onClose={() => setIsBlocking(false)} />}
      {isOverriding && (
        <OverrideDialog
          rule={rule}
          version={data!.version}
          attributes={attributes}
          onClose={() => setIsOverriding(false)}
        />
      )}
    </>
  );
}

/** The override that changes the limit for this request. */
export function OverrideInForce({ explained }: { explained: ExplainedRule }) {
  const { data } = useQuery(rulesQuery);
  const rule = data?.rules.find(({ id }) => id === explained.rule);
  const override = explained.override === undefined ? undefined : rule?.overrides?.[explained.override];
  if (rule === undefined || override === undefined) return null;
  return (
    <p>
      An override applies: <AttributeList attributes={override.match} />{" "}
      {describeNumbers({ ...rule, ...override } as Rule)} instead of {describeNumbers(rule)}.
    </p>
  );
}

interface BlockDialogProps {
  readonly rule: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly onClose: () => void;
}

function BlockDialog({ rule, attributes, onClose }: BlockDialogProps) {
  const client = useQueryClient();
  const [length, setLength] = useState("1h");
  const block = useMutation({
    mutationFn: () => request("/keys/block", { method: "POST", body: { rule, attributes, for: length } }),
    onSuccess: async () => {
      toast(`The key is blocked under ${rule} for ${length}. A reset lifts the block.`);
      onClose();
      await client.invalidateQueries({ queryKey: ["explain"] });
    },
  });
  return (
    <Dialog
      title={`Block this key under ${rule}?`}
      onClose={onClose}
      onSubmit={() => block.mutate()}
      footer={
        <button type="submit" className="button main bad" disabled={block.isPending}>
          Block the key
        </button>
      }
    >
      <Field label="For" hint="ms s m h d, such as 30m">
        {(control) => (
          <input
            {...control}
            className="input mono"
            value={length}
            onChange={(event) => setLength(event.target.value)}
          />
        )}
      </Field>
      {block.error !== null && <ProblemNotice error={block.error} title="Not blocked" />}
    </Dialog>
  );
}

/** Clients choose their values: one that a match reads as a pattern would give the limit to everybody that it matches. */
function isGlob(name: string, value: string): boolean {
  return value.includes("*") || (name === "ip" && value.includes("/"));
}

interface OverrideDialogProps {
  readonly rule: Rule;
  readonly version: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly onClose: () => void;
}

function OverrideDialog({ rule, version, attributes, onClose }: OverrideDialogProps) {
  const [limit, setLimit] = useState(String(rule.limit ?? ""));
  const [isReviewed, setIsReviewed] = useState(false);
  const match = Object.fromEntries(rule.key.map((name) => [name, attributes[name] ?? ""]));
  const isNumber = /^\d{1,15}$/.test(limit);
  const glob = Object.entries(match).find(([name, value]) => isGlob(name, value));
  if (isReviewed) {
    // The first matching override wins, so insert the new one first.
    const body = { ...rule, overrides: [{ match, limit: Number(limit) }, ...(rule.overrides ?? [])] };
    return (
      <ChangeDialog
        title={`Add an override to ${rule.id}`}
        verb="Add override"
        change={{ method: "PUT", path: `/rules/${rule.id}`, body, rule: rule.id, base: version }}
        onClose={onClose}
        onDone={({ version: made }) => {
          toast(`The key has a limit of its own, as of version ${made}.`, { version: made });
          onClose();
        }}
      />
    );
  }
  return (
    <Dialog
      title={`A limit of its own under ${rule.id}`}
      onClose={onClose}
      onSubmit={() => isNumber && glob === undefined && setIsReviewed(true)}
      footer={
        <button type="submit" className="button main" disabled={!isNumber || glob !== undefined}>
          Review
        </button>
      }
    >
      <p>
        For <AttributeList attributes={match} />
      </p>
      {glob !== undefined && (
        <Notice tone="warn" title={`In an override this ${visible(glob[0])} would stand for other keys too.`}>
          There {glob[0] === "ip" ? "an address block" : "an asterisk"} is a pattern, and no sign makes it plain text.
          {" Reset or block the key instead, or change the rule."}
        </Notice>
      )}
      <Field label="Limit" hint={`The rule's own: ${describeNumbers(rule)}. 0 refuses everything.`}>
        {(control) => (
          <input
            {...control}
            className="input mono"
            inputMode="numeric"
            value={limit}
            onChange={(event) => setLimit(event.target.value)}
          />
        )}
      </Field>
    </Dialog>
  );
}
