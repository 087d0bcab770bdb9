/** The thread that `traffic-worker.ts` starts. */
import { answerTasks } from "../threads/answer-tasks.js";
import type { TrafficOutcome, TrafficTask } from "./traffic-worker.js";

answerTasks<TrafficTask, TrafficOutcome>({
  load: async () => (await import("./traffic-worker.js")).runTrafficTask,
});
