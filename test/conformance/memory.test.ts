import { createLimiter } from "sluice";
import { virtualClock } from "sluice/testing";
import { conformance } from "./conformance.js";

const clock = virtualClock();

conformance({
  name: "memory",
  limiter: (rules) => createLimiter({ clock, rules }),
  wait: async (ms) => clock.advance(ms),
});
