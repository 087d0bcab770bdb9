/** Rows of figures, the bar of allowed against refused, attributes, and legends. */
import type { ReactNode } from "react";
import { count, share, visible } from "./format.js";

export type Mark = "allowed" | "refused" | "shadow" | "candidate" | "latency" | "before";

export function Figures({ children }: { children: ReactNode }) {
  return <dl className="panel figures">{children}</dl>;
}

export function Figure({ label, mark, children }: { label: string; mark?: Mark; children: ReactNode }) {
  return (
    <div className={`figure ${mark ?? ""}`}>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Allowed requests on the left, refused ones on the right. */
export function GateBar({
  allowed,
  refused,
  isShadow = false,
}: {
  allowed: number;
  refused: number;
  /** For a rule in shadow mode, which reports refusals without enforcing them. */
  isShadow?: boolean;
}) {
  const total = allowed + refused;
  const label =
    total === 0
      ? "no traffic"
      : `${count(allowed)} allowed, ${count(refused)} refused${isShadow ? " in shadow" : ""} (${share(refused / total)})`;
  return (
    <div className={`gate-bar ${total === 0 ? "quiet" : ""}`} role="img" aria-label={label} title={label}>
      <i style={{ flexGrow: total === 0 ? 1 : allowed / total }} />
      {refused > 0 && <b />}
      {refused > 0 && (
        <i className={`stopped ${isShadow ? "shadow" : ""}`} style={{ flexGrow: refused / total, minWidth: "3px" }} />
      )}
    </div>
  );
}

export function AttributeList({
  attributes,
  none = "all together",
}: {
  attributes: Readonly<Record<string, unknown>>;
  none?: string;
}) {
  const entries = Object.entries(attributes);
  if (entries.length === 0) return <span className="soft">{none}</span>;
  return (
    <span className="attributes">
      {entries.map(([name, value]) => (
        <span className="attribute" key={name}>
          <span>{visible(name)}=</span>
          {visible(Array.isArray(value) ? value.join(" | ") : String(value))}
        </span>
      ))}
    </span>
  );
}

export function Legend({ items }: { items: readonly { mark: Mark; label: string; value?: string }[] }) {
  return (
    <ul className="legend">
      {items.map(({ mark, label, value }) => (
        <li key={label} style={{ "--mark": `var(--${mark})` } as React.CSSProperties}>
          {label}
          {value !== undefined && <b>{value}</b>}
        </li>
      ))}
    </ul>
  );
}

/** Checks by the share of the limit in use: shows how close to their limits keys run. */
export function Utilisation({ steps }: { steps: readonly number[] }) {
  const most = Math.max(1, ...steps);
  const total = steps.reduce((sum, one) => sum + one, 0);
  return (
    <ol className="histogram" aria-label="Checks by the share of the limit in use">
      {steps.map((value, step) => {
        const label = step === 9 ? "90+" : `<${(step + 1) * 10}`;
        const described = `${step * 10} to ${(step + 1) * 10} % of the limit: ${count(value)} checks (${share(total === 0 ? 0 : value / total)})`;
        const style = { height: `${(value / most) * 100}%`, "--step": step } as React.CSSProperties;
        return (
          <li key={label} title={described}>
            <span className="bar" style={style} />
            <span aria-hidden="true">{label}</span>
            <span className="unseen">{described}</span>
          </li>
        );
      })}
    </ol>
  );
}
