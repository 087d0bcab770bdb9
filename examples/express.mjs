/**
 * Express: 5 requests per 10 seconds and client, and at most 2 reports at once.
 *
 *   node examples/express.mjs          then, until it is refused: curl -i http://127.0.0.1:3000/
 */
import express from "express";
import { rateLimit } from "sluice/express";

const app = express();
app.use(rateLimit({ limit: 5, window: "10s" }));

app.get("/", (_req, res) => {
  res.json({ hello: "world", left: res.locals.rateLimit.remaining });
});

app.get("/report", rateLimit({ algorithm: "concurrency", limit: 2 }), async (_req, res) => {
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  res.send("a slow report\n");
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
