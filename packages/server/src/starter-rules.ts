/**
 * The rules of a first run: small enough that one person with curl meets a refusal, loose enough to try things out under.
 */
import type { Rule } from "sluice";

export const starterRules: readonly Rule[] = [
  {
    id: "starter-per-user",
    description: "Five requests in any ten seconds for each user. Replace me.",
    key: ["user"],
    algorithm: "rolling-window",
    limit: 5,
    window: "10s",
  },
  {
    id: "starter-per-address",
    description: "For requests that come by address: forward-auth, the proxy. Replace me.",
    key: ["ip"],
    algorithm: "token-bucket",
    limit: 100,
    window: "1m",
  },
];
