import { expect, test } from "vitest";
import { SluiceError } from "../../errors.js";
import { fullMessage, isAboutTheCall, isScriptError, mayHaveRun, redisSays, unavailable } from "./failure.js";

test.each([
  ["WRONGPASS invalid username-password pair", "check the user and the password"],
  ["NOAUTH Authentication required.", "disagree on whether there is a password"],
  ["NOPERM this user has no permissions", "the rights that docs/reliability.md lists"],
  ["MOVED 3999 127.0.0.1:6381", "use redis+cluster://"],
  ["READONLY You can't write against a read only replica.", "the server is a replica"],
  ["OOM command not allowed when used memory > 'maxmemory'.", "raise maxmemory"],
  ["connect ECONNREFUSED 127.0.0.1:1", "check the address, and that Redis is up"],
  ["All sentinels are unreachable. Last error: No such master", "no Sentinel knows a master of this name"],
  ["All sentinels are unreachable", "check the addresses of the Sentinels"],
])("%s comes with its remedy", (message, remedy) => {
  expect(unavailable("not connected", new Error(message)).message).toContain(remedy);
});

test("an error includes its reason and its cause, once, and whether the call may have run", () => {
  const beneath = new Error("ECONNRESET");
  const error = unavailable("the connection broke", beneath, true);
  expect(error).toMatchObject({ code: "store-unavailable", cause: beneath, mayHaveRun: true });
  expect(error.message).toBe("Redis: the connection broke (ECONNRESET)");
  expect(unavailable("ECONNRESET", beneath).message).toBe("Redis: ECONNRESET");
});

test("a cluster's error includes that of its last node", () => {
  const error = Object.assign(new Error("Failed to refresh slots cache."), {
    lastNodeError: new Error("ECONNREFUSED"),
  });
  expect(fullMessage(error)).toBe("Failed to refresh slots cache. ECONNREFUSED");
  expect(fullMessage("text")).toBe("text");
});

const script = "ERR user_script:12: attempt to compare nil with number script: abc, on @user_script:12.";

test("errors about the call are no sign of an outage; those of the server's state are", () => {
  for (const message of ["NOSCRIPT No matching script.", "WRONGTYPE x", "LONG a counter", "ERR CALENDAR 5", script]) {
    expect(isAboutTheCall(new Error(message)), message).toBe(true);
  }
  for (const message of ["LOADING Redis is loading", "READONLY x", `${script} OOM command not allowed`, "timeout"]) {
    expect(isAboutTheCall(new Error(message)), message).toBe(false);
  }
});

test("a script error is found underneath our own", () => {
  expect(isScriptError(unavailable("x", new Error(script)))).toBe(true);
  expect(isScriptError(unavailable("x", new Error("LOADING")))).toBe(false);
  expect(redisSays(unavailable("x", new Error("ERR CALENDAR 17")), /CALENDAR (\d+)/)?.[1]).toBe("17");
  expect(redisSays("no error", /./)).toBeNull();
});

test("a call that Redis refused before running it did not run, even if it was sent", () => {
  expect(mayHaveRun(unavailable("no answer", undefined, true))).toBe(true);
  expect(mayHaveRun(unavailable("x", new Error("TRYAGAIN Multiple keys"), true))).toBe(false);
  expect(mayHaveRun(unavailable("not connected"))).toBe(false);
  expect(mayHaveRun(new SluiceError("closed", "closed"))).toBe(false);
});
