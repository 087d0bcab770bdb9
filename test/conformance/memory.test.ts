import { createLimiter } from "sluice";
import { virtualClock } from "sluice/testing";
import { conformance, type StoreUnderTest } from "./conformance.js";

const clock = virtualClock();

const memory: StoreUnderTest = {
  name: "memory",
  limiter: (rules) => createLimiter({ clock, rules }),
  wait: async (ms) => clock.advance(ms),
};

conformance([memory]);
