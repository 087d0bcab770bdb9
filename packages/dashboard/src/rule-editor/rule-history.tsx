/** The versions that changed a rule, and restoring the rule from one of them. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { versionQuery, versionsQuery } from "../api/queries.js";
import type { Rule, VersionView } from "../api/shapes.js";
import { dayTime, visible } from "../components/format.js";
import { Empty, Panel, Read } from "../components/panel.js";
import { useMayEditRules } from "../shell/session.js";
import { ChangeDialog } from "./change-dialog.js";
import { DiffView } from "./diff-view.js";

interface HistoryProps {
  readonly rule: Rule;
  readonly version: number;
  readonly onRestored: (from: number, made: number) => void;
}

export function RuleHistory({ rule, version, onRestored }: HistoryProps) {
  const versions = useQuery(versionsQuery({ rule: rule.id }));
  return (
    <Panel title="History" flush>
      <Read of={versions} what="history">
        {(view) =>
          view.versions.length === 0 ? (
            <Empty title="No version changed this rule." />
          ) : (
            <ul className="list">
              {view.versions.map((one) => (
                <RuleVersion key={one.version} of={one} rule={rule} version={version} onRestored={onRestored} />
              ))}
            </ul>
          )
        }
      </Read>
    </Panel>
  );
}

function RuleVersion({ of, rule, version, onRestored }: HistoryProps & { of: VersionView }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <li className="version">
      <div className="toolbar">
        <div>
          <span className="strong">Version {of.version}</span> <span className="tag">{of.kind}</span>
          <p className="break">
            {of.message === "" ? <span className="soft">no reason given</span> : visible(of.message)}
          </p>
          <p className="soft small">
            {visible(of.author)}, {dayTime(of.createdAt)}
          </p>
        </div>
        <button type="button" className="button small" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? "Hide" : "Show"}
          <span className="unseen"> version {of.version}</span>
        </button>
      </div>
      {isOpen && <Opened of={of} rule={rule} version={version} onRestored={onRestored} />}
    </li>
  );
}

function Opened({ of, rule, version, onRestored }: HistoryProps & { of: VersionView }) {
  const detail = useQuery(versionQuery(of.version));
  const [isAsking, setIsAsking] = useState(false);
  const mayEdit = useMayEditRules();
  return (
    <Read of={detail} what="version">
      {({ diff, rules }) => {
        const changes = diff.changes.filter((change) => change.rule === rule.id);
        const old = rules.find(({ id }) => id === rule.id);
        const isSame = JSON.stringify(old) === JSON.stringify(rule);
        return (
          <>
            <DiffView diff={{ added: 0, removed: 0, changed: changes.length, reordered: false, changes }} />
            {mayEdit && old !== undefined && !isSame && (
              <button type="button" className="button small" onClick={() => setIsAsking(true)}>
                Restore this rule as of version {of.version}
              </button>
            )}
            {isAsking && (
              <ChangeDialog
                title={`Restore ${rule.id} as of version ${of.version}`}
                verb="Restore"
                change={{ method: "PUT", path: `/rules/${rule.id}`, body: old, rule: rule.id, base: version }}
                onClose={() => setIsAsking(false)}
                onDone={({ version: made }) => {
                  setIsAsking(false);
                  onRestored(of.version, made);
                }}
              />
            )}
          </>
        );
      }}
    </Read>
  );
}
