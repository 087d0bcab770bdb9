/** The models with which the memory store counts, for replays in this repository that keep their own counters. */
export type { Model, State, Verdict } from "../../algorithms/model.js";
export { models } from "../../algorithms/models.js";
export type { Policy } from "../../algorithms/policy.js";
