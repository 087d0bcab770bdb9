/**
 * SETTINGS frames (RFC 9113, section 6.5): ours, and the parts of the peer's that matter here. The peer's table size does not (we never
 * index fields), nor does its frame size (ours fit the minimum that every peer accepts).
 */
import type { Frame } from "./frame-reader.js";
import type { Output } from "./output.js";
import { ConnectionError, errorCodes, frameTypes, MAX_FRAME_BYTES, MAX_WINDOW, settingIds } from "./protocol.js";

const SETTING_BYTES = 6;
const MOST_FRAME_SIZE = 2 ** 24 - 1;

export function writeSettings(
  output: Output,
  { mostStreams, mostHeaderListBytes }: { mostStreams: number; mostHeaderListBytes: number },
): void {
  const settings = [
    [settingIds.maxConcurrentStreams, mostStreams],
    [settingIds.maxHeaderListSize, mostHeaderListBytes],
  ] as const;
  let at = output.frame(frameTypes.settings, 0, 0, settings.length * SETTING_BYTES);
  for (const [id, value] of settings) {
    output.buffer.writeUInt16BE(id, at);
    output.buffer.writeUInt32BE(value, at + 2);
    at += SETTING_BYTES;
  }
}

/** If a setting occurs more than once, the last one wins. */
export function readSettings({ bytes, from, to }: Frame): { initialWindow: number | undefined } {
  if ((to - from) % SETTING_BYTES !== 0) {
    throw new ConnectionError(errorCodes.frameSizeError, "SETTINGS of a wrong size");
  }
  let initialWindow: number | undefined;
  for (let at = from; at < to; at += SETTING_BYTES) {
    const value = bytes.readUInt32BE(at + 2);
    switch (bytes.readUInt16BE(at)) {
      case settingIds.enablePush:
        if (value > 1) throw new ConnectionError(errorCodes.protocolError, "ENABLE_PUSH is neither 0 nor 1");
        break;
      case settingIds.maxFrameSize:
        if (value < MAX_FRAME_BYTES || value > MOST_FRAME_SIZE)
          throw new ConnectionError(errorCodes.protocolError, "MAX_FRAME_SIZE is out of its range");
        break;
      case settingIds.initialWindowSize:
        if (value > MAX_WINDOW)
          throw new ConnectionError(errorCodes.flowControlError, "INITIAL_WINDOW_SIZE is above 2^31-1");
        initialWindow = value;
        break;
      default:
      // Other settings do not concern us, or are unknown and must be ignored.
    }
  }
  return { initialWindow };
}
