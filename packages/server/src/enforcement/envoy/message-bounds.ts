/** Bounds on a RateLimitRequest besides its size: each descriptor is looked up, each entry compared. */
export const MOST_DESCRIPTORS = 256;
export const MOST_ENTRIES = 64;
