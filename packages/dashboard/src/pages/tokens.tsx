/** Named tokens: created, shown once, deleted. For admins; the service refuses others. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { memo, useState } from "react";
import { tokensQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import type { Role, TokenView } from "../api/shapes.js";
import { Field } from "../components/controls.js";
import { Dialog } from "../components/dialog.js";
import { dayTime, visible } from "../components/format.js";
import { LongRows } from "../components/long-rows.js";
import { Empty, Notice, Page, Panel, ProblemNotice, Read } from "../components/panel.js";
import { NeedsRole, useMay, useSession } from "../shell/session.js";
import { wallLink } from "../shell/wall-token.js";
import { Sessions } from "./sessions.js";

const roles: readonly { readonly role: Role; readonly may: string }[] = [
  { role: "viewer", may: "sees everything but tokens" },
  { role: "editor", may: "also changes rules and resets keys" },
  { role: "admin", may: "also makes and deletes tokens" },
];

const lives = [
  { value: "1d", label: "after a day" },
  { value: "30d", label: "after 30 days" },
  { value: "90d", label: "after 90 days" },
  { value: "365d", label: "after a year" },
  { value: "", label: "never" },
] as const;

interface NewToken {
  readonly name: string;
  readonly role: Role;
  readonly token: string;
}

export function TokensPage() {
  const isAdmin = useMay("admin");
  if (!isAdmin) {
    return (
      <Page title="Tokens">
        <NeedsRole needed="admin" to="see tokens" />
        <Sessions />
      </Page>
    );
  }
  return <AdminTokens />;
}

function AdminTokens() {
  const tokens = useQuery(tokensQuery);
  const [isMaking, setIsMaking] = useState(false);
  const [made, setMade] = useState<NewToken>();
  return (
    <Page
      title="Tokens"
      about="For people and programs that use the admin API. Only their hashes are kept; deleting one ends its sessions."
      actions={
        // Named tokens are stored in the rules database.
        useSession().rulesFrom !== "file" && (
          <button type="button" className="button main" onClick={() => setIsMaking(true)}>
            New token
          </button>
        )
      }
    >
      {made !== undefined && <Shown made={made} onDone={() => setMade(undefined)} />}
      <Panel flush>
        <Read of={tokens} what="tokens">
          {({ tokens: all }) =>
            all.length === 0 ? (
              <Empty title="No named tokens.">Only the first token works, which the service was started with.</Empty>
            ) : (
              <table className="cards long tokens" aria-rowcount={all.length + 1}>
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Role</th>
                    <th scope="col">Made</th>
                    <th scope="col">By</th>
                    <th scope="col">Expires</th>
                    <th scope="col">Last used</th>
                    <th scope="col">
                      <span className="unseen">Delete</span>
                    </th>
                  </tr>
                </thead>
                <LongRows rows={all} nameOf={nameOf}>
                  {(token, name) => <TokenRow key={name} token={token} />}
                </LongRows>
              </table>
            )
          }
        </Read>
      </Panel>
      <Sessions />
      {isMaking && (
        <MakeToken
          onClose={() => setIsMaking(false)}
          onMade={(token) => {
            setMade(token);
            setIsMaking(false);
          }}
        />
      )}
    </Page>
  );
}

function Shown({ made, onDone }: { made: NewToken; onDone: () => void }) {
  return (
    <Notice tone="good" title={`The token ${made.name} (${made.role}), shown this once:`}>
      <div className="shown-token">
        <code>{made.token}</code>
        <div className="buttons">
          <Copy text={made.token} />
          <button type="button" className="button small" onClick={onDone}>
            I have it
          </button>
        </div>
      </div>
      {made.role === "viewer" && (
        <>
          <p>A link for a wall screen, which signs itself in. It contains the token: keep it as you keep that.</p>
          <div className="shown-token">
            <code>{wallLink(location.origin, made.token)}</code>
            <Copy text={wallLink(location.origin, made.token)} what="link" />
          </div>
        </>
      )}
    </Notice>
  );
}

function Copy({ text, what = "" }: { text: string; what?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = (): void => void navigator.clipboard?.writeText(text).then(() => setCopied(true));
  return (
    <button type="button" className="button small" onClick={copy}>
      {copied ? "Copied" : `Copy ${what}`.trim()}
    </button>
  );
}

function MakeToken({ onClose, onMade }: { onClose: () => void; onMade: (made: NewToken) => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [expiresIn, setExpiresIn] = useState("90d");
  const make = useMutation({
    mutationFn: () =>
      request<NewToken>("/tokens", { method: "POST", body: { name, role, ...(expiresIn !== "" && { expiresIn }) } }),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: tokensQuery.queryKey });
      onMade(made);
    },
  });
  return (
    <Dialog
      title="New token"
      onClose={onClose}
      onSubmit={() => make.mutate()}
      footer={
        <button type="submit" className="button main" disabled={name === "" || make.isPending}>
          Make token
        </button>
      }
    >
      <Field label="Name" hint="Letters, digits and @ . _ -; changes are recorded under it.">
        {(control) => (
          <input
            {...control}
            className="input mono"
            autoComplete="off"
            maxLength={64}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <Field label="Role" hint={roles.find((one) => one.role === role)?.may}>
        {(control) => (
          <select {...control} className="input" value={role} onChange={(event) => setRole(event.target.value as Role)}>
            {roles.map((one) => (
              <option key={one.role}>{one.role}</option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Expires">
        {(control) => (
          <select {...control} className="input" value={expiresIn} onChange={(e) => setExpiresIn(e.target.value)}>
            {lives.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      {make.error !== null && <ProblemNotice error={make.error} title="Not made" />}
    </Dialog>
  );
}

function Expiry({ at }: { at: string }) {
  return Date.parse(at) > Date.now() ? dayTime(at) : <span className="tag warn">expired {dayTime(at)}</span>;
}

function nameOf({ name }: TokenView): string {
  return name;
}

const TokenRow = memo(function TokenRow({ token }: { token: TokenView }) {
  const client = useQueryClient();
  const [isAsking, setIsAsking] = useState(false);
  const remove = useMutation({
    mutationFn: () => request(`/tokens/${encodeURIComponent(token.name)}`, { method: "DELETE" }),
    onSuccess: () => client.invalidateQueries({ queryKey: tokensQuery.queryKey }),
  });
  return (
    <tr>
      <td className="mono break strong">{visible(token.name)}</td>
      <td data-label="Role">
        <span className={`tag ${token.role === "viewer" ? "" : "accent"}`}>{token.role}</span>
      </td>
      <td data-label="Made">{dayTime(token.createdAt)}</td>
      <td data-label="By" className="break">
        {token.createdBy}
      </td>
      <td data-label="Expires">{token.expiresAt === undefined ? "never" : <Expiry at={token.expiresAt} />}</td>
      <td data-label="Last used">{token.lastUsedAt === undefined ? "never" : dayTime(token.lastUsedAt)}</td>
      <td className="number">
        <button type="button" className="button small bad" onClick={() => setIsAsking(true)}>
          Delete<span className="unseen"> {token.name}</span>
        </button>
        {isAsking && (
          <Dialog
            title={`Delete the token ${token.name}?`}
            onClose={() => setIsAsking(false)}
            onSubmit={() => remove.mutate()}
            footer={
              <button type="submit" className="button main bad" disabled={remove.isPending}>
                Delete token
              </button>
            }
          >
            <p>Every instance refuses it within a second. This cannot be undone.</p>
            {remove.error !== null && <ProblemNotice error={remove.error} title="Not deleted" />}
          </Dialog>
        )}
      </td>
    </tr>
  );
});
