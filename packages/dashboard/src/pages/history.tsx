/** All versions of the rules: author, time, reason, changes; and rollback. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { rulesQuery, versionQuery, versionsQuery } from "../api/queries.js";
import type { VersionView } from "../api/shapes.js";
import { dayTime, visible } from "../components/format.js";
import { Older, usePages } from "../components/pagination.js";
import { Empty, Page, Panel, Read } from "../components/panel.js";
import { toast } from "../components/toast.js";
import { ChangeDialog } from "../rule-editor/change-dialog.js";
import { DiffView } from "../rule-editor/diff-view.js";
import { useMayEditRules } from "../shell/session.js";
import { useSearch } from "../time/use-search.js";

export function HistoryPage() {
  // A chart marker links to a version: the list starts there.
  const wanted = Number(new URLSearchParams(useSearch()).get("version") ?? 0);
  const pages = usePages(wanted > 0 ? wanted + 1 : undefined);
  const versions = useQuery(versionsQuery({ before: pages.before }));
  const current = useQuery(rulesQuery).data?.version;
  return (
    <Page
      title="History"
      about="Every version of the rules is kept. Going back makes an old version's rules the newest version."
    >
      <Panel flush>
        <Read of={versions} what="history">
          {(view) => (
            <>
              {view.versions.length === 0 ? (
                <Empty title="No versions." />
              ) : (
                <ul className="list">
                  {view.versions.map((version) => (
                    <Version
                      key={version.version}
                      version={version}
                      current={current}
                      isWanted={version.version === wanted}
                      onDone={(made) =>
                        toast(`The rules are those of version ${version.version} again, as version ${made}.`, {
                          version: made,
                        })
                      }
                    />
                  ))}
                </ul>
              )}
              <Older pages={pages} next={view.next} />
            </>
          )}
        </Read>
      </Panel>
    </Page>
  );
}

function Version({
  version,
  current,
  isWanted,
  onDone,
}: {
  version: VersionView;
  current: number | undefined;
  isWanted: boolean;
  onDone: (made: number) => void;
}) {
  const [isOpen, setIsOpen] = useState(isWanted);
  const [isAsking, setIsAsking] = useState(false);
  const mayEdit = useMayEditRules();
  const isCurrent = version.version === current;
  return (
    <li className={`version ${isWanted ? "wanted" : ""}`}>
      <div className="toolbar">
        <div>
          <span className="strong">Version {version.version}</span>{" "}
          {isCurrent && <span className="tag good">in force</span>} <span className="tag">{version.kind}</span>
          <p className="break">
            {version.message === "" ? <span className="soft">no reason given</span> : visible(version.message)}
          </p>
          <p className="soft small">
            {visible(version.author)}, {dayTime(version.createdAt)} · {version.summary}
          </p>
        </div>
        <div className="buttons">
          <button type="button" className="button small" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            {isOpen ? "Hide changes" : "Show changes"}
            <span className="unseen"> of version {version.version}</span>
          </button>
          {mayEdit && !isCurrent && current !== undefined && (
            <button type="button" className="button small" onClick={() => setIsAsking(true)}>
              Roll back<span className="unseen"> to version {version.version}</span>
            </button>
          )}
        </div>
      </div>
      {isOpen && <Changes version={version.version} />}
      {isAsking && (
        <ChangeDialog
          title={`Roll back to version ${version.version}`}
          verb="Roll back"
          change={{ method: "POST", path: `/versions/${version.version}/rollback`, base: current! }}
          onClose={() => setIsAsking(false)}
          onDone={({ version: made }) => {
            setIsAsking(false);
            onDone(made);
          }}
        />
      )}
    </li>
  );
}

function Changes({ version }: { version: number }) {
  const detail = useQuery(versionQuery(version));
  return (
    <Read of={detail} what="changes">
      {({ diff }) => <DiffView diff={diff} />}
    </Read>
  );
}
