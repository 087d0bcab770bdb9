import { expect, test } from "vitest";
import { MessageBudget, type Peer } from "./message-budget.js";

const MEBIBYTE = 2 ** 20;

function asking(budget: MessageBudget) {
  const running: string[] = [];
  const ask = (name: string, peer: Peer, bytes = MEBIBYTE) =>
    budget.reserve({
      peer,
      bytes,
      pause: () => void running.push(`${name} waits`),
      resume: () => void running.push(name),
    });
  return { ask, running };
}

test("a connection reserves up to 8 MiB; the next message waits until one is complete", () => {
  const budget = new MessageBudget();
  const peer = budget.join();
  const { ask, running } = asking(budget);
  const releases = Array.from({ length: 8 }, (_, i) => ask(`m${i}`, peer));
  const ninth = ask("ninth", peer);
  expect(running).toEqual(["ninth waits"]);
  releases[3]!();
  releases[3]!();
  expect(running).toEqual(["ninth waits", "ninth"]);
  ninth();
  expect(peer.reserved).toBe(7 * MEBIBYTE);
});

test("all connections together reserve up to 64 MiB, and waiting messages are admitted in order", () => {
  const budget = new MessageBudget();
  const { ask, running } = asking(budget);
  const peers = Array.from({ length: 10 }, () => budget.join());
  const releases = peers.slice(0, 8).flatMap((peer) => Array.from({ length: 8 }, () => ask("", peer)));
  ask("a", peers[8]!);
  const leaves = ask("b", peers[9]!);
  ask("c", peers[9]!);
  leaves();
  releases[0]!();
  expect(running).toEqual(["a waits", "b waits", "c waits", "a"]);
  releases[1]!();
  expect(running.at(-1)).toBe("c");
});

test("a message larger than the budget is admitted alone", () => {
  const budget = new MessageBudget();
  const { ask, running } = asking(budget);
  ask("large", budget.join(), 100 * MEBIBYTE);
  expect(running).toEqual([]);
});

test("beyond 4096 incomplete calls, connections with more than their share lose their new ones", () => {
  const budget = new MessageBudget();
  const [greedy, modest] = [budget.join(), budget.join()];
  const begun = Array.from({ length: 4_096 }, () => budget.begin(greedy));
  expect(begun).not.toContain(false);
  expect(budget.begin(greedy)).toBe(false);
  expect(budget.begin(modest)).toBe(true);
  budget.leave(modest);
  budget.end(greedy);
  expect(greedy.halfSent).toBe(4_096);
});
