/**
 * A download service that charges bytes: each client may take 10 MB a day, and four files at once. What a download will take is not
 * known when it begins (ranges, clients that leave), so an estimate is held, and the bytes that were sent are charged.
 *
 *   node examples/downloads/server.mjs     then, until it is refused: curl -so /dev/null -w '%{http_code} ' 127.0.0.1:3000/files/large
 */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import express from "express";
import { createLimiter } from "sluice";
import { rateLimit } from "sluice/express";

const sizes = new Map([
  ["small", 100_000],
  ["large", 6_000_000],
]);

const PIECE_BYTES = 64 * 1024;

const limiter = createLimiter({
  rules: [
    {
      id: "egress",
      key: ["ip"],
      algorithm: "fixed-window",
      limit: 10_000_000,
      window: "1d",
      unit: "bytes",
      cost: { attribute: "bytes_sent" },
      estimate: { attribute: "file_size", default: 100_000, ttl: "1m", overrun: "finish" },
    },
    { id: "at-once", key: ["ip"], algorithm: "concurrency", limit: 4 },
  ],
});

const app = express();
const limits = rateLimit({
  limiter,
  // Of the file, which the server knows; never of what the client says.
  attributes: (req) => ({ file_size: sizes.get(req.path.slice(1)) }),
  settle: { bytes_sent: "bytes" },
});

app.use("/files", limits, async (req, res) => {
  const size = sizes.get(req.path.slice(1));
  if (size === undefined) return res.status(404).end();
  const ranges = req.range(size);
  // -1: it begins behind the end; -2: it is none, and is passed over, as are several at once (RFC 9110, section 14.2).
  if (ranges === -1) return res.status(416).set("content-range", `bytes */${size}`).end();
  const range = Array.isArray(ranges) && ranges.length === 1 ? ranges[0] : undefined;
  const { start, end } = range ?? { start: 0, end: size - 1 };
  res.type("application/octet-stream").set({ "accept-ranges": "bytes", "content-length": String(end - start + 1) });
  if (range) res.status(206).set("content-range", `bytes ${start}-${end}/${size}`);
  if (req.method === "HEAD") return res.end();
  // Piece by piece, as the client takes them: bytes that were handed to the response count as sent.
  await pipeline(Readable.from(pieces(end - start + 1)), res).catch(() => undefined);
});

/** So many bytes of a file. */
function* pieces(bytes) {
  for (let left = bytes; left > 0; left -= PIECE_BYTES) yield Buffer.alloc(Math.min(left, PIECE_BYTES));
}

app.get("/left", async (req, res) => {
  const { checks } = await limiter.peek({ ip: req.ip }, { cost: 0 });
  res.json(Object.fromEntries(checks.map(({ rule, remaining, debt = 0 }) => [rule, remaining - debt])));
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
