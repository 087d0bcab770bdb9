/**
 * GCRA, the generic cell rate algorithm. Twin: gcra.lua. It keeps the theoretical arrival time of the next cell (tat); the token bucket
 * keeps the missing tokens. With deficit = (tat - now) / interval the two are the same function, so there is one body;
 * `test/twins/oracle.ts` checks it against the textbook form. Only the numbers differ: capacity is the burst, the emission interval is
 * window / limit.
 */
import type { Model } from "./model.js";
import type { BucketPolicy } from "./policy.js";
import { type BucketState, tokenBucket } from "./token-bucket.js";

export const gcra: Model<BucketPolicy, BucketState> = tokenBucket;
