/** Decorators are applied by hand: tests are compiled without the compiler options that Nest's decorators need. */
import "reflect-metadata";
import { Readable } from "node:stream";
import { Controller, Get, Header, Module, Options, Req, StreamableFile, type Type, UseGuards } from "@nestjs/common";
import { APP_GUARD, NestFactory } from "@nestjs/core";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import { type NestRequest, RateLimitGuard, RateLimitModule } from "sluice/nest";
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

type Decorator = MethodDecorator;

/** Decorates a class's method as `@a @b name()` would. */
export function decorate<T extends object>(
  target: Type<T>,
  name: keyof T & string,
  ...decorators: readonly Decorator[]
): void {
  const descriptor = Object.getOwnPropertyDescriptor(target.prototype, name)!;
  for (const decorator of decorators) decorator(target.prototype, name, descriptor);
}

function controllers(stage: Stage): Type[] {
  class Pages {
    root(req: NestRequest): string {
      stage.decisions.push(req.rateLimit);
      return "ok";
    }
    preflight(): string {
      return "ok";
    }
    stream(): StreamableFile {
      return new StreamableFile(Readable.from(stage.parts(), { objectMode: false }));
    }
    told(): object {
      return TOLD;
    }
    events(): StreamableFile {
      return new StreamableFile(Readable.from(stage.events(), { objectMode: false }), { type: EVENTS });
    }
    break(): StreamableFile {
      return new StreamableFile(Readable.from(stage.brokenParts(), { objectMode: false }));
    }
    fail(): void {
      throw new Error("the handler failed");
    }
  }
  decorate(Pages, "root", Get("/"));
  Req()(Pages.prototype, "root", 0);
  decorate(Pages, "preflight", Options("/"));
  decorate(Pages, "stream", Get("/stream"));
  decorate(Pages, "told", Get("/told"), Header(...COST_FIELD));
  decorate(Pages, "events", Get("/events"));
  decorate(Pages, "break", Get("/break"));
  decorate(Pages, "fail", Get("/fail"));
  Controller()(Pages);

  class Nested {
    leaf(): string {
      return "ok";
    }
  }
  decorate(Nested, "leaf", Get("/leaf"));
  Controller("/nested")(Nested);
  UseGuards(RateLimitGuard)(Nested);
  return [Pages, Nested];
}

/** A Nest application of these controllers behind the guard, listening. */
export async function serveControllers(app: {
  options: object;
  controllers: Type[];
  stage?: Stage;
  onFastify?: boolean;
}): Promise<ServedApp> {
  class App {}
  Module({
    imports: [RateLimitModule.forRoot(app.options)],
    controllers: app.controllers,
    providers: [{ provide: APP_GUARD, useExisting: RateLimitGuard }],
  })(App);
  const options = { logger: false, forceCloseConnections: true } as const;
  const platform = app.onFastify ? new FastifyAdapter({ forceCloseConnections: true }) : undefined;
  const nest = await (platform ? NestFactory.create(App, platform, options) : NestFactory.create(App, options));
  await nest.listen(0, "127.0.0.1");
  return { url: await nest.getUrl(), stage: app.stage ?? new Stage(), [Symbol.asyncDispose]: () => nest.close() };
}

function serve(options: CommonOptions, onFastify: boolean): Promise<ServedApp> {
  const stage = new Stage();
  const limits = {
    ...adapted<NestRequest>(options, (request) => (name) => request.headers[name]?.toString()),
    ...(options.ownRefusal && {
      onRefused: (context: { switchToHttp(): { getResponse(): { send(body: string): void } } }) => {
        context.switchToHttp().getResponse().send("refused by hand");
      },
    }),
  };
  return serveControllers({ options: limits, controllers: controllers(stage), stage, onFastify });
}

export const frameworks: readonly Framework[] = [
  { name: "Nest on Express", legacyReset: "delta", serve: (options) => serve(options, false) },
  { name: "Nest on Fastify", legacyReset: "delta", serve: (options) => serve(options, true) },
];
