/** Reads the live views of a running service, one per second, from its Server-Sent Events. */
import type { LiveView } from "../monitoring/views/stats.js";
import { CommandFailure } from "./command-failure.js";
import { type AdminOptions, openAdmin } from "./rules-client.js";

/** Views come every second. After this long without one, the service hangs, is unreachable, or cannot read its history. */
const SILENCE_MS = 10_000;

/** Ends when the service ends the stream; rejects if it cannot be opened, or if no view arrives for too long. */
export async function* readLiveViews(
  options: AdminOptions,
  signal: AbortSignal,
  silenceMs = SILENCE_MS,
): AsyncGenerator<LiveView> {
  const silence = new AbortController();
  const timer = setTimeout(
    () =>
      silence.abort(
        new CommandFailure(
          `no figures came for ${silenceMs / 1_000} s: the service hangs, or cannot read its history (is its Redis up?)`,
        ),
      ),
    silenceMs,
  );
  try {
    const answer = await openAdmin("/stats/stream", options, AbortSignal.any([signal, silence.signal]));
    const chunks = answer.pipeThrough(new TextDecoderStream() as never) as unknown as AsyncIterable<string>;
    let text = "";
    for await (const chunk of chunks) {
      text += chunk;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const data = /^event: live\ndata: (.*)$/.exec(text.slice(0, end))?.[1];
        text = text.slice(end + 2);
        if (data === undefined) continue;
        timer.refresh();
        yield JSON.parse(data) as LiveView;
      }
    }
  } finally {
    clearTimeout(timer);
  }
}
