import { createServer, type Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { stream } from "hono/streaming";
import { rateLimiter } from "sluice/hono";
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

/** The application alone, for runtimes other than Node too. */
export function honoApp(options: CommonOptions, stage: Stage): Hono {
  const limits = rateLimiter({
    ...adapted<Context>(options, (c) => (name) => c.req.header(name)),
    ...(options.ownRefusal && { onRefused: () => new Response("refused by hand") }),
  });
  const app = new Hono();
  app.use(limits);
  app.get("/", (c) => {
    stage.decisions.push(c.get("rateLimit"));
    return c.text("ok");
  });
  app.options("/", (c) => c.text("ok"));
  app.get("/stream", (c) =>
    stream(c, async (to) => {
      for await (const part of stage.parts()) await to.write(part);
    }),
  );
  app.get("/told", (c) => {
    c.header(...COST_FIELD);
    return c.json(TOLD);
  });
  app.get("/events", (c) => {
    c.header("content-type", EVENTS);
    return stream(c, async (to) => {
      for await (const part of stage.events()) await to.write(part);
    });
  });
  app.get("/break", () => {
    const parts = stage.brokenParts();
    const body = new ReadableStream({
      async pull(controller) {
        const { value } = await parts.next();
        controller.enqueue(new TextEncoder().encode(value as string));
      },
    });
    return new Response(body);
  });
  app.get("/fail", () => {
    throw new Error("the handler failed");
  });
  app.onError((_error, c) => c.text("failed", 500));
  const nested = new Hono();
  nested.use(limits);
  nested.get("/leaf", (c) => c.text("ok"));
  app.route("/nested", nested);
  return app;
}

function serve(options: CommonOptions): Promise<ServedApp> {
  const stage = new Stage();
  const server = createAdaptorServer({ fetch: honoApp(options, stage).fetch, createServer });
  return listening(server as Server, stage);
}

export const framework: Framework = { name: "Hono", legacyReset: "epoch", serve };
