/**
 * What every store must answer, as data: rules, then steps with what each must give. Steps that need time to pass wait for it
 * in the store's own time; no expectation depends on how fast a store is.
 */
import { inTime, perAlgorithm } from "./schedules/algorithms.js";
import { blocks, denying } from "./schedules/blocks.js";
import { charges } from "./schedules/charges.js";
import { ids } from "./schedules/ids.js";
import { reservations, reservedTogether } from "./schedules/reservations.js";
import { many } from "./schedules/rules-together.js";
import type { Schedule } from "./schedules/schedule.js";
import { turns, turnsInTime } from "./schedules/turns.js";

export const schedules: readonly Schedule[] = [
  ...perAlgorithm,
  ...ids,
  ...charges,
  ...denying,
  ...blocks,
  ...reservations,
  ...reservedTogether,
  ...turns,
  ...turnsInTime,
  ...inTime,
  ...many,
];
