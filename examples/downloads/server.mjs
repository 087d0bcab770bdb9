/**
 * A download service that charges bytes: each client may take 10 MB a day, and four files at once. What a download will take is not
 * known when it begins (ranges, clients that leave), so an estimate is held, and the bytes that were sent are charged.
 *
 *   node examples/downloads/server.mjs     then, until it is refused: curl -so /dev/null -w '%{http_code} ' 127.0.0.1:3000/files/large
 */
import express from "express";
import { createLimiter } from "sluice";
import { rateLimit } from "sluice/express";

const sizes = new Map([
  ["small", 100_000],
  ["large", 6_000_000],
]);

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

app.use("/files", limits, (req, res) => {
  const size = sizes.get(req.path.slice(1));
  if (size === undefined) return res.status(404).end();
  const [range] = req.range(size) || [{ start: 0, end: size - 1 }];
  res.type("application/octet-stream").set("accept-ranges", "bytes");
  if (req.headers.range) res.status(206).set("content-range", `bytes ${range.start}-${range.end}/${size}`);
  res.end(Buffer.alloc(range.end - range.start + 1));
});

app.get("/left", async (req, res) => {
  const { checks } = await limiter.peek({ ip: req.ip }, { cost: 0 });
  res.json(Object.fromEntries(checks.map(({ rule, remaining, debt = 0 }) => [rule, remaining - debt])));
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
