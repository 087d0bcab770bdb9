/**
 * Koa: 5 requests per 10 seconds and user, named by a header; strangers are counted by address.
 *
 *   node examples/koa.mjs              then, until it is refused: curl -i -H "x-user: ann" http://127.0.0.1:3000/
 */
import Koa from "koa";
import { rateLimit } from "sluice/koa";

const app = new Koa();
app.use(
  rateLimit({
    limit: 5,
    window: "10s",
    key: ["client"],
    attributes: (ctx) => ({ client: ctx.get("x-user") || ctx.ip }),
  }),
);

app.use((ctx) => {
  ctx.body = { hello: "world", left: ctx.state.rateLimit.remaining };
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
