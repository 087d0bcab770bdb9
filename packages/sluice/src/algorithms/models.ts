/** The model of each stored form. */
import type { Stored } from "../keys.js";
import { concurrency } from "./concurrency.js";
import { fixedWindow } from "./fixed-window.js";
import { gcra } from "./gcra.js";
import type { Model, State } from "./model.js";
import type { Policy } from "./policy.js";
import { pool } from "./pool.js";
import { rollingWindow } from "./rolling-window.js";
import { slidingCounter } from "./sliding-counter.js";
import { tokenBucket } from "./token-bucket.js";

// A model only ever gets policies and states of its own form: the letter at the end of a key identifies the form.
export const models = {
  "token-bucket": tokenBucket,
  gcra,
  "fixed-window": fixedWindow,
  "sliding-counter": slidingCounter,
  "rolling-window": rollingWindow,
  "rolling-window-packed": rollingWindow,
  concurrency,
  pool,
} as unknown as Readonly<Record<Stored, Model<Policy, State>>>;
