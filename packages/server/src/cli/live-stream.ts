/** The live views of a running service, one a second, from its Server-Sent Events. */
import type { LiveView } from "../monitoring/views.js";
import { type AdminOptions, openAdmin } from "./rules-client.js";

/** Ends when the service ends the stream; rejects if it cannot be opened, or says nothing for too long. */
export async function* readLiveViews(options: AdminOptions, signal: AbortSignal): AsyncGenerator<LiveView> {
  const answer = await openAdmin("/stats/stream", options, signal);
  let text = "";
  for await (const chunk of answer.pipeThrough(new TextDecoderStream() as never) as unknown as AsyncIterable<string>) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const data = /^event: live\ndata: (.*)$/.exec(text.slice(0, end))?.[1];
      text = text.slice(end + 2);
      if (data !== undefined) yield JSON.parse(data) as LiveView;
    }
  }
}
