/** The thread that `rule-worker.ts` starts. */
import { answerTasks } from "../threads/answer-tasks.js";
import type { ReadAnswer, Task } from "./rule-worker.js";

answerTasks<Task, ReadAnswer>({
  load: async () => (await import("./rule-worker.js")).runTask,
  transferOf: (answer) =>
    "document" in answer && typeof answer.document !== "string" ? [answer.document.buffer as ArrayBuffer] : [],
});
