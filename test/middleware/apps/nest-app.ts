/** Decorators are applied by hand: tests are compiled without the compiler options that Nest's decorators need. */
import "reflect-metadata";
import { Readable } from "node:stream";
import { Controller, Get, Module, Options, Req, Res, type Type, UseGuards } from "@nestjs/common";
import { APP_GUARD, NestFactory } from "@nestjs/core";
import type { Response } from "express";
import { type NestRequest, RateLimitGuard, RateLimitModule } from "sluice/nest";
import { adapted, type CommonOptions, type Framework, type ServedApp, Stage } from "./served-app.js";

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
    stream(res: Response): void {
      Readable.from(stage.parts()).pipe(res);
    }
    break(res: Response): void {
      const parts = Readable.from(stage.brokenParts());
      parts.on("error", () => res.destroy());
      parts.pipe(res);
    }
    fail(): void {
      throw new Error("the handler failed");
    }
  }
  decorate(Pages, "root", Get("/"));
  Req()(Pages.prototype, "root", 0);
  decorate(Pages, "preflight", Options("/"));
  decorate(Pages, "stream", Get("/stream"));
  Res()(Pages.prototype, "stream", 0);
  decorate(Pages, "break", Get("/break"));
  Res()(Pages.prototype, "break", 0);
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
}): Promise<ServedApp> {
  class App {}
  Module({
    imports: [RateLimitModule.forRoot(app.options)],
    controllers: app.controllers,
    providers: [{ provide: APP_GUARD, useExisting: RateLimitGuard }],
  })(App);
  const nest = await NestFactory.create(App, { logger: false, forceCloseConnections: true });
  await nest.listen(0, "127.0.0.1");
  return { url: await nest.getUrl(), stage: app.stage ?? new Stage(), [Symbol.asyncDispose]: () => nest.close() };
}

function serve(options: CommonOptions): Promise<ServedApp> {
  const stage = new Stage();
  const limits = {
    ...adapted<NestRequest>(options, (request) => (name) => request.headers[name]?.toString()),
    ...(options.ownRefusal && {
      onRefused: (context: { switchToHttp(): { getResponse(): Response } }) => {
        context.switchToHttp().getResponse().send("refused by hand");
      },
    }),
  };
  return serveControllers({ options: limits, controllers: controllers(stage), stage });
}

export const framework: Framework = { name: "Nest", legacyReset: "delta", serve };
