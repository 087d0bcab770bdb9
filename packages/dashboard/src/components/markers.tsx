/** Chart markers for rule changes and alerts: links over the canvas at their time. Those too close together are merged. */
import { Link } from "wouter";
import { dayTime } from "./format.js";

export interface Marker {
  readonly atMs: number;
  readonly kind: "rules" | "promotion" | "rollback" | "alert";
  readonly label: string;
  readonly href: string;
}

/** As a fraction of the chart's width. */
const CLOSEST = 0.012;
const signs: Readonly<Record<Marker["kind"], string>> = { rules: "R", promotion: "P", rollback: "B", alert: "!" };

interface Placed {
  readonly at: number;
  readonly markers: Marker[];
}

/** In order of time; a group is placed at its first marker. Markers in the last step are placed at its start. Pure. */
export function placeMarkers(markers: readonly Marker[], timesMs: readonly number[]): Placed[] {
  const fromMs = timesMs[0]!;
  const toMs = timesMs.at(-1)!;
  const endMs = 2 * toMs - timesMs.at(-2)!;
  const placed: Placed[] = [];
  for (const marker of [...markers].sort((a, b) => a.atMs - b.atMs)) {
    if (marker.atMs < fromMs || marker.atMs > endMs) continue;
    const at = Math.min(1, (marker.atMs - fromMs) / (toMs - fromMs));
    const last = placed.at(-1);
    if (last !== undefined && at - last.at < CLOSEST) last.markers.push(marker);
    else placed.push({ at, markers: [marker] });
  }
  return placed;
}

export function Markers({ markers, timesMs }: { markers: readonly Marker[]; timesMs: readonly number[] }) {
  return (
    <ul className="markers" aria-label="Changes and alerts">
      {placeMarkers(markers, timesMs).map(({ at, markers: group }) => {
        const newest = group.at(-1)!;
        const alert = group.find(({ kind }) => kind === "alert");
        const shown = alert ?? newest;
        const label = group.map((one) => `${dayTime(one.atMs)} ${one.label}`).join("; ");
        return (
          <li key={`${newest.href} ${group.length}`} style={{ "--at": at } as React.CSSProperties}>
            <Link href={shown.href} className={`marker ${shown.kind}`} title={label}>
              <span aria-hidden="true">{group.length > 1 ? group.length : signs[shown.kind]}</span>
              <span className="unseen">{label}</span>
            </Link>
          </li>
        );
      })}
    </ul>
  );
}
