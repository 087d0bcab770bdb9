/** Chooses the time that all pages show: a range that ends now, or from one instant to another; what to compare with; the time zone. */
import { useState } from "react";
import { useSearch } from "wouter";
import { Field } from "../components/controls.js";
import { Dialog } from "../components/dialog.js";
import { dayTime, fromZoned, zoned } from "../components/format.js";
import { boundsOf, type Compare, type Preset, presets, type ShownTime } from "../time/time-address.js";
import { useTime } from "../time/use-time.js";
import { browserZone, isZone, keepZone, zoneIn } from "./zone.js";

type Compares = readonly { value: Compare | ""; label: string }[];

const compares: Readonly<Record<"charts" | "keys", Compares>> = {
  charts: [
    { value: "", label: "No comparison" },
    { value: "span", label: "The span before" },
    { value: "day", label: "A day before" },
    { value: "week", label: "A week before" },
  ],
  // Keys are kept for two days: there is no week before.
  keys: [
    { value: "", label: "No comparison" },
    { value: "span", label: "The span before" },
    { value: "day", label: "A day before" },
  ],
};

interface TimeBarProps {
  /** What a page shows whose address names no time. */
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
          onZone={(chosen) => {
            keepZone(chosen);
            setParameter("zone", chosen === browserZone ? undefined : chosen);
          }}
          onTime={set}
        />
      )}
    </div>
  );
}

interface TimeDialogProps {
  readonly time: ShownTime;
  readonly zone: string;
  readonly onClose: () => void;
  readonly onZone: (zone: string) => void;
  readonly onTime: (time: ShownTime) => void;
}

function TimeDialog({ time, zone: given, onClose, onZone, onTime }: TimeDialogProps) {
  const start = boundsOf(time);
  const [from, setFrom] = useState(zoned(start.fromMs));
  const [to, setTo] = useState(zoned(start.toMs));
  const [zone, setZoneText] = useState(given);
  const fromMs = fromZoned(from);
  const toMs = fromZoned(to);
  const hasOrder = fromMs < toMs;
  const hasChanged = from !== zoned(start.fromMs) || to !== zoned(start.toMs);
  return (
    <Dialog
      title="Time"
      onClose={onClose}
      onSubmit={() => {
        if (!isZone(zone) || !hasOrder) return;
        onClose();
        if (zone !== given) onZone(zone);
        else if (hasChanged) onTime({ range: "custom", fromMs, toMs });
      }}
      footer={
        <button type="submit" className="button main" disabled={!isZone(zone) || !hasOrder}>
          Show
        </button>
      }
    >
      <div className="time-fields">
        <Field label="From" hint={`In ${given}`}>
          {(control) => (
            <input
              {...control}
              className="input"
              type="datetime-local"
              step="1"
              value={from}
              onChange={(event) => setFrom(event.target.value)}
            />
          )}
        </Field>
        <Field label="To" hint={`In ${given}`} mistake={hasOrder ? undefined : "The end must be after the beginning."}>
          {(control) => (
            <input
              {...control}
              className="input"
              type="datetime-local"
              step="1"
              value={to}
              onChange={(event) => setTo(event.target.value)}
            />
          )}
        </Field>
        <Field
          label="Time zone"
          hint={`Yours is ${browserZone}. Any IANA name, such as Europe/Berlin.`}
          mistake={isZone(zone) ? undefined : "There is no time zone of this name."}
        >
          {(control) => (
            <>
              <input
                {...control}
                className="input"
                list="time-zones"
                value={zone}
                onChange={(event) => setZoneText(event.target.value)}
              />
              <datalist id="time-zones">
                {["UTC", ...Intl.supportedValuesOf("timeZone")].map((name) => (
                  <option key={name} value={name} />
                ))}
              </datalist>
            </>
          )}
        </Field>
      </div>
      <p className="soft small">
        Seconds are kept for two minutes, minutes for two hours, quarter hours for eight days.
      </p>
    </Dialog>
  );
}
