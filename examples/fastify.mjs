/**
 * Fastify: 5 requests per 10 seconds and client; one route has limits of its own, one has none.
 *
 *   node examples/fastify.mjs          then, until it is refused: curl -i http://127.0.0.1:3000/
 */
import fastify from "fastify";
import { rateLimit } from "sluice/fastify";

const app = fastify();
await app.register(rateLimit, { limit: 5, window: "10s" });

app.get("/", (request) => ({ hello: "world", left: request.rateLimit.remaining }));
app.post("/login", { config: { rateLimit: { limit: 3, window: "15m", skipSuccessful: true } } }, (_request, reply) =>
  reply.code(401).send({ error: "wrong password" }),
);
app.get("/health", { config: { rateLimit: false } }, () => "ok");

const url = await app.listen({ port: Number(process.env.PORT ?? 3000), host: "127.0.0.1" });
console.log(`listening on ${url}`);
