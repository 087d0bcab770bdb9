/** The validation result of a draft: mistakes and warnings, with their lines in the YAML text. */
import { Notice, ProblemNotice } from "../components/panel.js";

interface Remark {
  readonly path: string;
  readonly message: string;
  readonly line: number | undefined;
}

function Remarks({ of }: { of: readonly Remark[] }) {
  return (
    <ul>
      {of.map(({ path, message, line }) => (
        <li key={`${path} ${message}`}>
          {line !== undefined && `line ${line}: `}
          {path !== "" && <code>{path}</code>} {message}
        </li>
      ))}
    </ul>
  );
}

export function ValidationResult({
  mistakes,
  warnings,
  isPending,
  error,
}: {
  mistakes: readonly Remark[];
  warnings: readonly Remark[];
  isPending: boolean;
  error: Error | undefined;
}) {
  return (
    <div role="status" className="judgement">
      {error !== undefined ? (
        <ProblemNotice error={error} title="It cannot be checked" />
      ) : mistakes.length > 0 ? (
        <Notice tone="warn" title={mistakes.length === 1 ? "One mistake" : `${mistakes.length} mistakes`}>
          <Remarks of={mistakes} />
        </Notice>
      ) : warnings.length > 0 && !isPending ? (
        <Notice tone="warn" title="Valid, but most likely not what you mean">
          <Remarks of={warnings} />
        </Notice>
      ) : (
        <span className="soft small">{isPending ? "Checking …" : "No mistakes."}</span>
      )}
    </div>
  );
}
