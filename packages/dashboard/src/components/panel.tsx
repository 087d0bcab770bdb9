/** Building blocks of pages: head, panels, and placeholders for missing figures. */
import { type ReactNode, useEffect, useRef } from "react";
import { Problem } from "../api/request.js";

export function Page({
  title,
  about,
  actions,
  children,
}: {
  title: string;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Sluice`;
    // Announces the new page to screen readers, and lets skip link and keyboard continue from here.
    heading.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [title]);
  return (
    <div className="page">
      <header className="page-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {about !== undefined && <p>{about}</p>}
        </div>
        {actions !== undefined && <div className="buttons">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function Panel({
  title,
  about,
  actions,
  flush = false,
  children,
}: {
  title?: ReactNode;
  about?: ReactNode;
  actions?: ReactNode;
  /** For tables and lists, which have their own padding. */
  flush?: boolean;
  children: ReactNode;
}) {
  return (
    <section className="panel">
      {title !== undefined && (
        <header>
          <h2>{title}</h2>
          {actions}
          {about !== undefined && <p>{about}</p>}
        </header>
      )}
      <div className={flush ? (title === undefined ? "flush bare" : "flush") : "body"}>{children}</div>
    </section>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

export function Notice({
  tone,
  title,
  children,
}: {
  tone?: "good" | "warn" | "bad";
  title?: string;
  children?: ReactNode;
}) {
  return (
    <div className={`notice ${tone ?? ""}`} role={tone === "bad" ? "alert" : "status"}>
      {title !== undefined && <strong>{title}</strong>}
      {children !== undefined && <div>{children}</div>}
    </div>
  );
}

/** Replaces error details that come from a client library: they name addresses and help few readers. */
const plainWords: Readonly<Record<string, string>> = {
  "database-unavailable": "The database of rules, versions and the audit does not answer.",
  "store-unavailable": "The store does not answer.",
};

/** A failed call in the service's own words, with the remedy. */
export function ProblemNotice({ error, title }: { error: unknown; title?: string }) {
  const problem = error instanceof Problem ? error : undefined;
  return (
    <Notice tone="bad" {...(title !== undefined && { title })}>
      {problem === undefined ? String(error) : (plainWords[problem.code] ?? problem.message)}
      {problem !== undefined && problem.remedy !== "" && <div className="small">{problem.remedy}</div>}
    </Notice>
  );
}

interface Reading<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly isPending: boolean;
}

/**
 * Renders a query: its data, or that it is loading, not available in this service, or failed. Stale data stays visible and is marked: by
 * the banner if the service is unreachable, by a notice if it answers with an error.
 */
export function Read<T>({ of, what, children }: { of: Reading<T>; what: string; children: (data: T) => ReactNode }) {
  if (of.data !== undefined) {
    const isOld = of.error instanceof Problem && of.error.status !== 0 && of.error.status !== 401;
    return (
      <>
        {isOld && <ProblemNotice error={of.error} title="These figures are old" />}
        {children(of.data)}
      </>
    );
  }
  if (of.isPending) return <Empty title={`Reading ${what} …`} />;
  const status = of.error instanceof Problem ? of.error.status : undefined;
  if (status === 404) return <Empty title={`This service does not offer ${what}.`}>It answers 404.</Empty>;
  if (status === 0) return <Empty title="The service does not answer.">The page keeps trying.</Empty>;
  if (of.error instanceof Problem && of.error.code === "rules-from-file") {
    return (
      <Empty title={`No ${what}: the rules come from a file.`}>
        A service whose rules are in a database keeps them: start it without <code>--rules</code>, and import the file
        with <code>sluice rules apply FILE</code>.
      </Empty>
    );
  }
  return (
    <div className="empty">
      <ProblemNotice error={of.error} title={`No ${what}`} />
    </div>
  );
}
