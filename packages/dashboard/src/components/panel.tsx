/** The pieces that every page is set from: its head, panels, and what stands in for figures that are not there. */
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
    // A screen reader hears where a link has led to; the skip link and the keyboard go on from here.
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
  /** For tables and lists, which bring their own spacing. */
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

/** Errors whose detail comes from a client library: it names addresses and helps few readers. */
const plainWords: Readonly<Record<string, string>> = {
  "database-unavailable": "The database of rules, versions and the audit does not answer.",
  "store-unavailable": "The store does not answer.",
};

/** A failed call in the service's own words, and what to do. */
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
 * Renders a query: its data, or that it is loading, absent from this service, or failed. Old data stays and is marked as old: by the
 * banner where the service is away, by a notice where it answers with an error.
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
  return (
    <div className="empty">
      <ProblemNotice error={of.error} title={`No ${what}`} />
    </div>
  );
}
