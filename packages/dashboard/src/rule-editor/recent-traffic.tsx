/** Before a save: what the draft would do to the requests of the last ten minutes, where the service records them. */
import { useQuery } from "@tanstack/react-query";
import { Problem, request } from "../api/request.js";
import type { TryView } from "../api/shapes.js";
import { count } from "../components/format.js";
import { Notice } from "../components/panel.js";
import type { Draft } from "./draft.js";
import { TRY_DEADLINE_MS } from "./try-on-traffic.js";

/** The service lists so many keys at most. */
const MOST_LISTED = 10;

function keyCount(listed: number): string {
  if (listed === 1) return "1 key";
  return listed < MOST_LISTED ? `${listed} keys` : `${MOST_LISTED} keys or more`;
}

export function RecentTraffic({ draft }: { draft: Draft }) {
  const attempt = useQuery({
    queryKey: ["recent-traffic", draft],
    queryFn: () =>
      request<TryView>(`/rules/${encodeURIComponent(String(draft.id))}/try`, {
        method: "POST",
        body: draft,
        query: { span: "10m" },
        deadlineMs: TRY_DEADLINE_MS,
      }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });
  if (attempt.isPending) return <p className="soft small">Trying it on the last ten minutes …</p>;
  if (attempt.data === undefined) {
    const isUnknown = attempt.error instanceof Problem && attempt.error.code === "no-recording";
    return (
      <p className="soft small">
        {isUnknown
          ? "This service records no traffic (--record): how many requests it would meet is unknown."
          : "It could not be tried on recent traffic."}
      </p>
    );
  }
  const { total, newlyRefused, newlyAdmitted, newlyRefusedKeys, newlyAdmittedKeys, rules } = attempt.data;
  const own = rules.find(({ mode }) => mode !== "candidate");
  const keys = (listed: readonly unknown[]): string => (listed.length === 0 ? "" : ` of ${keyCount(listed.length)}`);
  return (
    <Notice {...(newlyRefused > 0 && { tone: "warn" as const })} title="On the requests of the last ten minutes">
      {count(own?.total ?? 0)} of {count(total)} would meet the rule; {count(newlyRefused)} newly refused
      {keys(newlyRefusedKeys)}, {count(newlyAdmitted)} newly admitted{keys(newlyAdmittedKeys)}.
    </Notice>
  );
}
