import { Readable } from "node:stream";
import fastify, { type FastifyRequest } from "fastify";
import { rateLimit } from "sluice/fastify";
import {
  adapted,
  COST_FIELD,
  type CommonOptions,
  EVENTS,
  type Framework,
  type ServedApp,
  Stage,
  TOLD,
} from "./served-app.js";

async function serve(options: CommonOptions): Promise<ServedApp> {
  const stage = new Stage();
  const limits = {
    ...adapted<FastifyRequest>(options, (request) => (name) => request.headers[name]?.toString()),
    ...(options.ownRefusal && { onRefused: () => "refused by hand" }),
  };
  const app = fastify({ forceCloseConnections: true });
  await app.register(rateLimit, limits);
  app.get("/", (request) => {
    stage.decisions.push(request.rateLimit);
    return "ok";
  });
  app.options("/", () => "ok");
  app.get("/stream", (_request, reply) => reply.send(Readable.from(stage.parts())));
  app.get("/told", (_request, reply) => reply.header(...COST_FIELD).send(TOLD));
  app.get("/events", (_request, reply) => reply.type(EVENTS).send(Readable.from(stage.events())));
  app.get("/break", (_request, reply) => reply.send(Readable.from(stage.brokenParts())));
  app.get("/fail", () => {
    throw new Error("the handler failed");
  });
  await app.register(
    async (nested) => {
      // A plugin makes its own limits each time; registered twice, it counts once where both share a limiter.
      if (options.limiter !== undefined) await nested.register(rateLimit, limits);
      nested.get("/leaf", () => "ok");
    },
    { prefix: "/nested" },
  );
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return { url, stage, [Symbol.asyncDispose]: () => app.close() };
}

export const framework: Framework = { name: "Fastify 5", legacyReset: "delta", serve };
