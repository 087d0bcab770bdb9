import { expect, test } from "vitest";
import { isLoopback, noAnswer } from "./no-answer.js";

test("this machine in every notation, and names that only look like it", () => {
  for (const server of ["http://127.0.0.1:1", "http://127.1", "http://LOCALHOST", "https://[::1]:8443"])
    expect([server, isLoopback(server)]).toEqual([server, true]);
  for (const server of [
    "http://127.0.0.1.example.com",
    "http://localhost.example.com",
    "http://10.0.0.1",
    "http://a@b",
  ])
    expect([server, isLoopback(server)]).toEqual([server, false]);
});

test("a port that fetch never calls is named as such", async () => {
  const error = await fetch("http://127.0.0.1:6000").catch((cause: unknown) => cause);
  expect(noAnswer("http://127.0.0.1:6000", error).message).toBe(
    "http://127.0.0.1:6000 was not asked: browsers and fetch never call this port (https://fetch.spec.whatwg.org/#port-blocking). Serve on another",
  );
});

test("a message contains what was tried, why it failed and what to do", () => {
  const refused = new Error("fetch failed", { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) });
  expect(noAnswer("http://127.0.0.1:8080", refused).message).toBe(
    'http://127.0.0.1:8080 did not answer: nothing listens there. Start it with "sluice serve", or name another with --server (SLUICE_SERVER)',
  );
  expect(noAnswer("http://localhost:81", refused).message).toContain('"sluice serve --port 81"');
  const late = Object.assign(new Error("late"), { name: "TimeoutError" });
  expect(noAnswer("https://limits.example.com", late).message).toBe(
    "https://limits.example.com did not answer: it took too long. Check the address of --server (SLUICE_SERVER), and that the service is up",
  );
});
