import { expect, test, vi } from "vitest";
import { MovingSlots } from "./moving-slots.js";
import { NodeReach } from "./node-reach.js";

const nodeOf = (key: string): string =>
  key.includes("a") ? "10.0.0.1:6379" : key.includes("b") ? "10.0.0.2:6379" : "";
const reached = (): { reach: NodeReach; moving: MovingSlots } => {
  const moving = new MovingSlots();
  return { reach: new NodeReach(nodeOf, moving), moving };
};

test("one script reaches the keys of a node; if the node is unknown, those of a tag", () => {
  const { reach } = reached();
  expect(reach.of("{user=a1}:r:p")).toBe(reach.of("{user=a2}:r:b"));
  expect(reach.of("{user=a1}:r:p")).not.toBe(reach.of("{user=b1}:r:p"));
  expect(reach.of("{user=c1}:r:p")).toBe("user=c1");
});

test("a moving slot is reached by tag, the others of its node as before", () => {
  const { reach, moving } = reached();
  moving.add("user=a1");
  expect(reach.of("{user=a1}:r:p")).toBe("user=a1");
  expect(reach.of("{user=a2}:r:p")).toBe("10.0.0.1:6379");
});

test.each([
  "ERR Script attempted to access a non local key in a cluster node script: 1f, on @user_script:3.",
  "ERR Script attempted to access keys that do not hash to the same slot script: 1f, on @user_script:3.",
  "CROSSSLOT Keys in request don't hash to the same slot",
])("a node that lacks a key is used by tag, for a moment: %s", (said) => {
  vi.useFakeTimers();
  const { reach } = reached();
  expect(reach.wasRefused("{user=a1}:r:p", new Error(said))).toBe(true);
  expect(reach.of("{user=a2}:r:p")).toBe("user=a2");
  expect(reach.of("{user=b2}:r:p")).toBe("10.0.0.2:6379");
  vi.advanceTimersByTime(300);
  expect(reach.of("{user=a2}:r:p")).toBe("10.0.0.1:6379");
  vi.useRealTimers();
});

test.each([
  "ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'",
  "ERR Unexpected flag in script shebang: allow-cross-slot-keys",
  "ERR Error running script: script tried accessing undeclared key",
])("a server without such scripts is not tried again: %s", (said) => {
  vi.useFakeTimers();
  const { reach } = reached();
  expect(reach.wasRefused("{user=a1}:r:p", new Error(said))).toBe(true);
  vi.advanceTimersByTime(3_600_000);
  expect(reach.of("{user=b2}:r:p")).toBe("user=b2");
  vi.useRealTimers();
});

test("any other failure does not affect the reach", () => {
  const { reach } = reached();
  for (const said of ["WRONGTYPE Operation against a key", "OOM command not allowed", "READONLY You can't write"]) {
    expect(reach.wasRefused("{user=a1}:r:p", new Error(said))).toBe(false);
  }
  expect(reach.of("{user=a2}:r:p")).toBe("10.0.0.1:6379");
});
