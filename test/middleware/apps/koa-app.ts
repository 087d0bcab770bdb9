import { createServer } from "node:http";
import { Readable } from "node:stream";
import Koa, { type Context } from "koa";
import { rateLimit } from "sluice/koa";
import {
  adapted,
  COST_FIELD,
  type CommonOptions,
  EVENTS,
  type Framework,
  listening,
  type ServedApp,
  Stage,
  TOLD,
} from "./served-app.js";

function serve(options: CommonOptions): Promise<ServedApp> {
  const stage = new Stage();
  const limits = rateLimit({
    ...adapted<Context>(options, (ctx) => (name) => ctx.get(name) || undefined),
    ...(options.ownRefusal && {
      onRefused: (ctx: Context) => {
        ctx.body = "refused by hand";
      },
    }),
  });
  const app = new Koa();
  app.silent = true;
  app.use(limits);
  // Koa has no router of its own: a mount is a middleware that looks at the path.
  app.use((ctx, next) => (ctx.path.startsWith("/nested/") ? limits(ctx, next) : next()));
  app.use((ctx) => {
    stage.decisions.push(ctx.state.rateLimit);
    if (ctx.path === "/" || ctx.path === "/nested/leaf") ctx.body = "ok";
    else if (ctx.path === "/stream") ctx.body = Readable.from(stage.parts());
    else if (ctx.path === "/told") {
      ctx.set(...COST_FIELD);
      ctx.body = TOLD;
    } else if (ctx.path === "/events") {
      ctx.type = EVENTS;
      ctx.body = Readable.from(stage.events());
    } else if (ctx.path === "/break") ctx.body = Readable.from(stage.brokenParts());
    else if (ctx.path === "/fail") throw new Error("the handler failed");
  });
  return listening(createServer(app.callback()), stage);
}

export const framework: Framework = { name: "Koa", legacyReset: "epoch", serve };
