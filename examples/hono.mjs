/**
 * Hono on Node: two rules at once, of which the tighter speaks in the RateLimit field.
 *
 *   node examples/hono.mjs             then, until it is refused: curl -i http://127.0.0.1:3000/
 */
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { rateLimiter } from "sluice/hono";

const app = new Hono();
app.use(
  rateLimiter({
    rules: [
      { id: "burst", key: ["ip"], algorithm: "token-bucket", limit: 5, window: "10s" },
      { id: "daily", key: ["ip"], algorithm: "fixed-window", limit: 1000, window: "1d" },
    ],
  }),
);

app.get("/", (c) => c.json({ hello: "world", left: c.get("rateLimit").remaining }));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000), hostname: "127.0.0.1" }, ({ port }) => {
  console.log(`listening on http://127.0.0.1:${port}`);
});
