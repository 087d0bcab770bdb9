/** The thread that `limit-worker.ts` starts. */
import { answerTasks } from "../../threads/answer-tasks.js";
import type { LimitAnswer, LimitTask } from "./limit-worker.js";

answerTasks<LimitTask, LimitAnswer>({
  load: async () => (await import("./limit-worker.js")).runLimitTask,
  transferOf: (answer) => ("chunks" in answer ? answer.chunks.map(({ buffer }) => buffer as ArrayBuffer) : []),
});
