/** Selects the time for all pages: a range that ends now, or an absolute one; the comparison; the time zone. */
import { useState } from "react";
import { dayTime } from "../components/format.js";
import { type Compare, type Preset, presets } from "../time/time-address.js";
import { useSearch } from "../time/use-search.js";
import { useTime } from "../time/use-time.js";
import { TimeDialog } from "./time-dialog.js";
import { browserZone, keepZone, zoneIn } from "./zone.js";

type Compares = readonly { value: Compare | ""; label: string }[];

const compares: Readonly<Record<"charts" | "keys", Compares>> = {
  charts: [
    { value: "", label: "No comparison" },
    { value: "span", label: "The span before" },
    { value: "day", label: "A day before" },
    { value: "week", label: "A week before" },
  ],
  // Keys are kept for two days, so there is no last week.
  keys: [
    { value: "", label: "No comparison" },
    { value: "span", label: "The span before" },
    { value: "day", label: "A day before" },
  ],
};

interface TimeBarProps {
  /** The default if the URL names no time. */
  readonly fallback?: Preset;
  readonly hasLive?: boolean;
  readonly compareWith?: "charts" | "keys";
}

export function TimeBar({ fallback = "1h", hasLive = false, compareWith }: TimeBarProps) {
  const { time, compare, set, setParameter } = useTime(fallback);
  const zone = zoneIn(useSearch());
  const [isChoosing, setIsChoosing] = useState(false);
  const offered = compares[compareWith ?? "charts"];
  const custom = time.range === "custom" ? `${dayTime(time.fromMs)} to ${dayTime(time.toMs)}` : "From … to …";
  return (
    <div className="time-bar">
      <select
        className="input small"
        aria-label="Time"
        value={time.range}
        onChange={({ target: { value } }) =>
          value === "custom" ? setIsChoosing(true) : set({ range: value as Preset })
        }
      >
        {presets
          .filter(({ value }) => hasLive || value !== "live" || time.range === "live")
          .map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        <option value="custom">{custom}</option>
      </select>
      {compareWith !== undefined && time.range !== "live" && (
        <select
          className="input small"
          aria-label="Compare with"
          value={offered.some(({ value }) => value === compare) ? compare : ""}
          onChange={({ target: { value } }) => setParameter("compare", value === "" ? undefined : value)}
        >
          {offered.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      )}
      <button type="button" className="button small" onClick={() => setIsChoosing(true)}>
        <span className="unseen">Time and time zone: </span>
        {zone}
      </button>
      {isChoosing && (
        <TimeDialog
          time={time}
          zone={zone}
          onClose={() => setIsChoosing(false)}
          onChoose={(chosen, range) => {
            keepZone(chosen);
            const parameter = chosen === browserZone ? undefined : chosen;
            if (range === undefined) setParameter("zone", parameter);
            else set({ range: "custom", ...range }, { zone: parameter });
          }}
        />
      )}
    </div>
  );
}
