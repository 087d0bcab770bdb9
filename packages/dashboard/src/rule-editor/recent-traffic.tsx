/** Before saving: what the draft would have done to the requests of the last ten minutes, if the service records them. */
import { useQuery } from "@tanstack/react-query";
import { Problem, request } from "../api/request.js";
import type { TryView } from "../api/shapes.js";
import { count } from "../components/format.js";
import { Notice } from "../components/panel.js";
import type { Draft } from "./draft.js";
import { TRY_DEADLINE_MS } from "./try-on-traffic.js";

/** ` of 2 keys`; empty if there are none. */
function ofKeys(keys: number, isExact: boolean): string {
  if (keys === 0) return "";
  if (keys === 1) return " of 1 key";
  return ` of ${isExact ? "" : "at least "}${count(keys)} keys`;
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
  const { total, newlyRefused, newlyAdmitted, keysNewlyRefused, keysNewlyAdmitted, keysExact, rules } = attempt.data;
  const own = rules.find(({ mode }) => mode !== "candidate");
  return (
    <Notice {...(newlyRefused > 0 && { tone: "warn" as const })} title="On the requests of the last ten minutes">
      {count(own?.total ?? 0)} of {count(total)} requests{ofKeys(own?.keys ?? 0, own?.exact ?? true)} would meet the
      rule; {count(newlyRefused)} newly refused{ofKeys(keysNewlyRefused, keysExact)}, {count(newlyAdmitted)} newly
      admitted
      {ofKeys(keysNewlyAdmitted, keysExact)}.
    </Notice>
  );
}
