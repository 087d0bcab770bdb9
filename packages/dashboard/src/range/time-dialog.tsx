/** A dialog for from, to and time zone. Times are interpreted in the selected zone. */
import { useState } from "react";
import { Field } from "../components/controls.js";
import { Dialog } from "../components/dialog.js";
import { boundsOf, type ShownTime } from "../time/time-address.js";
import { browserZone, isZone } from "./zone.js";
import { instantsOf, isTime, zoned } from "./zoned-time.js";

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

interface TimeDialogProps {
  readonly time: ShownTime;
  readonly zone: string;
  readonly onClose: () => void;
  /** Without a range, the current time stays. */
  readonly onChoose: (zone: string, range?: Range) => void;
}

export function TimeDialog({ time, zone: given, onClose, onChoose }: TimeDialogProps) {
  const [start] = useState(() => boundsOf(time));
  // The user's input; before that the current time, in the selected zone.
  const [typed, setTyped] = useState<{ readonly from?: string; readonly to?: string }>({});
  const [zone, setZone] = useState(given);
  const readIn = isZone(zone) ? zone : given;
  const from = typed.from ?? zoned(start.fromMs, readIn);
  const to = typed.to ?? zoned(start.toMs, readIn);
  // For an ambiguous hour (clocks go back), use the earlier instant as the start and the later one as the end: nothing is left out.
  const fromMs = typed.from === undefined ? start.fromMs : instantsOf(from, readIn)[0];
  const toMs = typed.to === undefined ? start.toMs : instantsOf(to, readIn).at(-1);
  const hasOrder = fromMs === undefined || toMs === undefined || fromMs < toMs;
  const isReady = isZone(zone) && fromMs !== undefined && toMs !== undefined && hasOrder;
  return (
    <Dialog
      title="Time"
      onClose={onClose}
      onSubmit={() => {
        if (!isReady) return;
        onClose();
        const hasChanged = typed.from !== undefined || typed.to !== undefined;
        if (hasChanged || zone !== given) onChoose(zone, hasChanged ? { fromMs, toMs } : undefined);
      }}
      footer={
        <button type="submit" className="button main" disabled={!isReady}>
          Show
        </button>
      }
    >
      <div className="time-fields">
        <TimeField
          label="From"
          zone={readIn}
          text={from}
          mistake={fromMs === undefined ? mistakeIn(from, readIn) : undefined}
          onChange={(text) => setTyped({ ...typed, from: text })}
        />
        <TimeField
          label="To"
          zone={readIn}
          text={to}
          mistake={
            toMs === undefined ? mistakeIn(to, readIn) : hasOrder ? undefined : "The end must be after the beginning."
          }
          onChange={(text) => setTyped({ ...typed, to: text })}
        />
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
                onChange={(event) => setZone(event.target.value)}
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

function mistakeIn(text: string, zone: string): string {
  return isTime(text) ? `Clocks skip this time in ${zone}.` : "Expected a date and a time.";
}

interface TimeFieldProps {
  readonly label: string;
  readonly zone: string;
  readonly text: string;
  readonly mistake: string | undefined;
  readonly onChange: (text: string) => void;
}

function TimeField({ label, zone, text, mistake, onChange }: TimeFieldProps) {
  return (
    <Field label={label} hint={`In ${zone}`} mistake={mistake}>
      {(control) => (
        <input
          {...control}
          className="input"
          type="datetime-local"
          step="1"
          value={text}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}
