/**
 * Nest: 5 requests per 10 seconds and client on every handler, reports more tightly, health not at all.
 *
 *   node examples/nest.mjs             then, until it is refused: curl -i http://127.0.0.1:3000/
 *
 * In TypeScript the same is written with decorators:
 *
 *   @Controller()
 *   class Pages {
 *     @Get() root() { … }
 *     @Get("report") @RateLimit({ limit: 1, window: "1m" }) report() { … }
 *     @Get("health") @SkipRateLimit() health() { … }
 *   }
 */
import "reflect-metadata";
import { Controller, Get, Module } from "@nestjs/common";
import { APP_GUARD, NestFactory } from "@nestjs/core";
import { RateLimit, RateLimitGuard, RateLimitModule, SkipRateLimit } from "sluice/nest";

class Pages {
  root() {
    return { hello: "world" };
  }
  report() {
    return "a report\n";
  }
  health() {
    return "ok\n";
  }
}
Controller()(Pages);
decorate("root", Get("/"));
decorate("report", Get("report"), RateLimit({ limit: 1, window: "1m" }));
decorate("health", Get("health"), SkipRateLimit());

class App {}
Module({
  imports: [RateLimitModule.forRoot({ limit: 5, window: "10s" })],
  controllers: [Pages],
  providers: [{ provide: APP_GUARD, useExisting: RateLimitGuard }],
})(App);

const app = await NestFactory.create(App, { logger: ["error"] });
await app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
console.log(`listening on ${await app.getUrl()}`);

/** What `@decorator` above a method does. */
function decorate(method, ...decorators) {
  for (const decorator of decorators) {
    decorator(Pages.prototype, method, Object.getOwnPropertyDescriptor(Pages.prototype, method));
  }
}
