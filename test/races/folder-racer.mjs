/**
 * One of many processes that want a data folder. In: messages `{ folder, atMs }` (take it at that instant) and `"release"`.
 * Out: "ready", then for each race "held" or the message of the refusal, then "released".
 */
import { holdFolder } from "../../packages/server/dist/instance/data-folder.js";

/** @type {{ release(): void } | undefined} */
let held;
/** @param {string} text */
const answer = (text) => process.send?.(text);

process.on("message", async (/** @type {{ folder: string, atMs: number } | "release"} */ message) => {
  if (message === "release") {
    held?.release();
    held = undefined;
    return answer("released");
  }
  // Spins: timers of many processes do not end in the same tenth of a millisecond.
  while (Date.now() < message.atMs);
  try {
    held = await holdFolder(message.folder);
    answer("held");
  } catch (error) {
    answer(/** @type {Error} */ (error).message);
  }
});
answer("ready");
