/** The models by which the memory store counts, for replays of this repository that keep counters of their own. */
export type { Model, State, Verdict } from "../../algorithms/model.js";
export { models } from "../../algorithms/models.js";
export type { Policy } from "../../algorithms/policy.js";
