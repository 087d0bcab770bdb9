/**
 * A limit that follows a backend: while the backend reports that it is busy the limit comes down, step by step; then it recovers.
 *   node examples/library/adapt.mjs
 */
import { createLimiter } from "sluice";

const limiter = createLimiter({
  rules: [
    {
      id: "queries",
      key: [],
      algorithm: "token-bucket",
      limit: 100,
      window: "1s",
      adapt: { signal: "reported", target: 0.7, min: 20, max: 200 },
    },
  ],
});

/** The limit moves once a second. Resolves when it has moved twice. */
function twoMoves() {
  return new Promise((resolve) => {
    let moves = 0;
    const tell = ({ from, to, utilisation }) => {
      console.log(`utilisation ${utilisation}: the limit went ${to < from ? "down" : "up"} from ${from} to ${to}`);
      if (++moves < 2) return;
      limiter.off("limit", tell);
      resolve();
    };
    limiter.on("limit", tell);
  });
}

// A server would keep the program alive.
const alive = setInterval(() => {}, 1_000);
await limiter.reportUtilisation(1, { source: "database" });
await twoMoves();
await limiter.reportUtilisation(0.35, { source: "database" });
await twoMoves();
clearInterval(alive);
await limiter.close();
