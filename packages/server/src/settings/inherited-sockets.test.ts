import { expect, test } from "vitest";
import { inheritedSockets } from "./inherited-sockets.js";

test("sockets start after standard error, with their names if they have any", () => {
  expect(inheritedSockets({ LISTEN_PID: "7", LISTEN_FDS: "2", LISTEN_FDNAMES: "grpc:http" }, 7)).toEqual({
    sockets: [
      { fd: 3, name: "grpc" },
      { fd: 4, name: "http" },
    ],
  });
  expect(inheritedSockets({ LISTEN_PID: "7", LISTEN_FDS: "1" }, 7)).toEqual({ sockets: [{ fd: 3, name: undefined }] });
});

test("there are none without the variables, or for another process", () => {
  expect(inheritedSockets({}, 7)).toEqual({ sockets: [] });
  expect(inheritedSockets({ LISTEN_PID: "8", LISTEN_FDS: "2" }, 7)).toEqual({ sockets: [], forProcess: 8 });
});

test.each([
  [{ LISTEN_FDS: "1" }, "LISTEN_PID: expected a whole number from 1 to 2147483647 (socket activation), got nothing"],
  [
    { LISTEN_PID: "x", LISTEN_FDS: "1" },
    'LISTEN_PID: expected a whole number from 1 to 2147483647 (socket activation), got "x"',
  ],
  [{ LISTEN_PID: "7" }, "LISTEN_FDS: expected a whole number from 0 to 16 (socket activation), got nothing"],
  [
    { LISTEN_PID: "7", LISTEN_FDS: "-1" },
    'LISTEN_FDS: expected a whole number from 0 to 16 (socket activation), got "-1"',
  ],
  [
    { LISTEN_PID: "7", LISTEN_FDS: "1e9" },
    'LISTEN_FDS: expected a whole number from 0 to 16 (socket activation), got "1e9"',
  ],
  [
    { LISTEN_PID: "7", LISTEN_FDS: "17" },
    'LISTEN_FDS: expected a whole number from 0 to 16 (socket activation), got "17"',
  ],
  [
    { LISTEN_PID: "7", LISTEN_FDS: "2", LISTEN_FDNAMES: "grpc" },
    'LISTEN_FDNAMES: expected 2 names with colons between, as LISTEN_FDS has it, got "grpc"',
  ],
])("%o is a mistake that is named", (env, message) => {
  expect(() => inheritedSockets(env, 7)).toThrow(message);
});
