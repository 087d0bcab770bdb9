/**
 * An application that uses express-rate-limit keeps it, and gets exact rolling windows from our store.
 * With REDIS_URL set, every process that shares the Redis shares the limit.
 *
 *   node examples/express-rate-limit.mjs   then, until it is refused: curl -i http://127.0.0.1:3000/
 */
import express from "express";
import { rateLimit } from "express-rate-limit";
import { rollingStore } from "sluice/express-rate-limit";
import { redisStore } from "sluice/redis";

const store = process.env.REDIS_URL === undefined ? undefined : redisStore(process.env.REDIS_URL);

const app = express();
app.use(
  rateLimit({
    windowMs: 10_000,
    limit: 5,
    standardHeaders: "draft-8",
    legacyHeaders: false,
    store: rollingStore(store === undefined ? {} : { store }),
  }),
);

app.get("/", (_req, res) => {
  res.json({ hello: "world" });
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
