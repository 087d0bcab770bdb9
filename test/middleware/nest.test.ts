/** What only Nest has: decorators, asynchronous options, exceptions. */
import { Controller, type ExecutionContext, Get, Module, type Type, UseGuards } from "@nestjs/common";
import { APP_GUARD, ExternalContextCreator, NestFactory } from "@nestjs/core";
import { type Decision, memoryStore } from "sluice";
import { RateLimit, RateLimitException, RateLimitGuard, RateLimitModule, SkipRateLimit } from "sluice/nest";
import { expect, test, vi } from "vitest";
import { decorate, serveControllers } from "./apps/nest-app.js";

function catsController(): Type {
  class Cats {
    list(): string {
      return "ok";
    }
    report(): string {
      return "ok";
    }
    health(): string {
      return "ok";
    }
    dear(): string {
      return "ok";
    }
  }
  decorate(Cats, "list", Get("list"));
  decorate(Cats, "report", Get("report"), RateLimit({ limit: 1, window: "1h" }));
  decorate(Cats, "health", Get("health"), SkipRateLimit());
  decorate(Cats, "dear", Get("dear"), RateLimit({ cost: 5 }));
  Controller("cats")(Cats);
  return Cats;
}

test("a handler's own limits replace the module's, and SkipRateLimit takes them away", async () => {
  await using app = await serveControllers({ options: { limit: 10, window: "1m" }, controllers: [catsController()] });
  const ask = async (path: string) => {
    const { status, headers } = await fetch(`${app.url}/cats/${path}`);
    return [status, headers.get("ratelimit")];
  };
  expect(await ask("list")).toEqual([200, '"10-per-1m";r=9;t=60']);
  expect(await ask("report")).toEqual([200, '"cats.report";r=0;t=3600']);
  expect((await ask("report"))[0]).toBe(429);
  expect(await ask("health")).toEqual([200, null]);
  expect(await ask("dear")).toEqual([200, '"10-per-1m";r=4;t=60']);
});

test("handlers whose long names begin alike count apart on a shared store", async () => {
  class OrganizationMembershipInvitationsAdministrationController {
    acceptInvitationByToken(): string {
      return "ok";
    }
    acceptInvitationBySession(): string {
      return "ok";
    }
  }
  const controller = OrganizationMembershipInvitationsAdministrationController;
  const own = () => RateLimit({ limit: 1, window: "1h" });
  decorate(controller, "acceptInvitationByToken", Get("token"), own());
  decorate(controller, "acceptInvitationBySession", Get("session"), own());
  Controller("invitations")(controller);
  await using app = await serveControllers({ options: { store: memoryStore() }, controllers: [controller] });
  const ask = async (path: string) => (await fetch(`${app.url}/invitations/${path}`)).status;
  expect([await ask("token"), await ask("session"), await ask("token")]).toEqual([200, 200, 429]);
});

test("limits of a controller hold for each of its handlers apart, and a handler can step out", async () => {
  class Dogs {
    one(): string {
      return "ok";
    }
    two(): string {
      return "ok";
    }
    free(): string {
      return "ok";
    }
  }
  decorate(Dogs, "one", Get("one"));
  decorate(Dogs, "two", Get("two"));
  decorate(Dogs, "free", Get("free"), SkipRateLimit());
  Controller("dogs")(Dogs);
  RateLimit({ limit: 1, window: "1m" })(Dogs);
  await using app = await serveControllers({ options: {}, controllers: [Dogs] });
  const status = async (path: string) => (await fetch(`${app.url}/dogs/${path}`)).status;
  expect([await status("one"), await status("two"), await status("one")]).toEqual([200, 200, 429]);
  expect([await status("free"), await status("free")]).toEqual([200, 200]);
});

test("options may come from a factory, and a refusal is an exception that filters see", async () => {
  const seen: unknown[] = [];
  class Pages {
    root(): string {
      return "ok";
    }
  }
  decorate(Pages, "root", Get("/"));
  Controller()(Pages);
  class App {}
  Module({
    imports: [RateLimitModule.forRootAsync({ useFactory: async () => ({ limit: 1, window: "1m" }) })],
    controllers: [Pages],
    providers: [{ provide: APP_GUARD, useExisting: RateLimitGuard }],
  })(App);
  const app = await NestFactory.create(App, { logger: false, forceCloseConnections: true });
  app.useGlobalFilters({
    catch(exception: unknown, host) {
      seen.push(exception);
      host.switchToHttp().getResponse().status(429).send("filtered");
    },
  });
  await app.listen(0, "127.0.0.1");
  const url = await app.getUrl();
  await fetch(url);
  const refused = await fetch(url);
  expect(await refused.text()).toBe("filtered");
  expect(refused.headers.get("retry-after")).toBe("60");
  expect(seen[0]).toBeInstanceOf(RateLimitException);
  expect((seen[0] as RateLimitException).decision).toMatchObject({ allowed: false, rule: "1-per-1m" });
  await app.close();
});

/** A resolver behind a guard, called as @nestjs/graphql calls it: by Nest's own pipeline, with (root, args, context, info). */
async function resolverBehind(guard: Type, type: "graphql" | "ws" | "rpc") {
  class Resolver {
    login(): string {
      return "ok";
    }
  }
  UseGuards(guard)(Resolver);
  class App {}
  Module({ imports: [RateLimitModule.forRoot({ limit: 2, window: "1h" })], providers: [Resolver, guard] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const instance = app.get(Resolver);
  const creator = app.get(ExternalContextCreator, { strict: false });
  const options = { guards: true, filters: false, interceptors: false };
  const call = creator.create(
    instance,
    instance.login,
    "login",
    "",
    undefined,
    undefined,
    undefined,
    options,
    type,
  ) as unknown as (...args: unknown[]) => Promise<unknown>;
  const sent = new Map<string, string>();
  const req = {
    method: "POST",
    originalUrl: "/graphql",
    headers: {},
    socket: { remoteAddress: "192.0.2.1" },
    app: { settings: {} },
  };
  const res = {
    header: (name: string, value: string) => sent.set(name.toLowerCase(), value),
    status: vi.fn(),
    once: () => undefined,
  };
  return { app, call, req, res, sent };
}

test("each resolver of a GraphQL request counts: aliases in one request do not escape", async () => {
  const { app, call, req, res, sent } = await resolverBehind(RateLimitGuard, "graphql");
  const resolve = () => call({}, {}, { req, res }, { fieldName: "login" });
  expect([await resolve(), await resolve()]).toEqual(["ok", "ok"]);
  await expect(resolve()).rejects.toBeInstanceOf(RateLimitException);
  expect(Number(sent.get("retry-after"))).toBeGreaterThan(0);
  // The response has one status for all of its fields.
  expect(res.status).not.toHaveBeenCalled();
  await expect(call({}, {}, {}, {})).rejects.toThrow(/expected req and res in the context of GraphQL/);
  await app.close();
});

test("a guard may say where the request is, as with @nestjs/throttler", async () => {
  class OwnGuard extends RateLimitGuard {
    protected override getRequestResponse(context: ExecutionContext) {
      return context.getArgByIndex(0);
    }
  }
  const { app, call, req, res } = await resolverBehind(OwnGuard, "ws");
  expect(await call({ req: { ...req }, res })).toBe("ok");
  expect(await call({ req: { ...req }, res })).toBe("ok");
  await expect(call({ req: { ...req }, res })).rejects.toBeInstanceOf(RateLimitException);
  await app.close();
});

test("every message of a socket counts, by the address of socket.io's handshake or of ws", async () => {
  class EventGuard extends RateLimitGuard {
    protected override async shouldSkip(context: ExecutionContext) {
      return context.switchToWs().getData() === "ping";
    }
    protected override async throwRefusal(_context: ExecutionContext, decision: Decision): Promise<never> {
      throw new Error(`${decision.rule} refuses`);
    }
  }
  const { app, call } = await resolverBehind(EventGuard, "ws");
  const client = { handshake: { headers: {}, address: "192.0.2.9", url: "/socket.io/?EIO=4" } };
  const send = (socket: object, data: string) => call(socket, data, "chat");
  expect([await send(client, "a"), await send(client, "b")]).toEqual(["ok", "ok"]);
  await expect(send(client, "c")).rejects.toThrow("2-per-1h refuses");
  expect(await send(client, "ping")).toBe("ok");
  const ofWs = { _socket: { remoteAddress: "192.0.2.10" } };
  expect([await send(ofWs, "a"), await send(ofWs, "b")]).toEqual(["ok", "ok"]);
  await expect(send(ofWs, "c")).rejects.toThrow("refuses");
  await app.close();
});

test("several named limits hold together, for the module and for a handler", async () => {
  const named = (id: string, limit: number, window: "1h") =>
    ({ id, key: ["ip"], algorithm: "fixed-window", limit, window }) as const;
  class Birds {
    one(): string {
      return "ok";
    }
    two(): string {
      return "ok";
    }
  }
  decorate(Birds, "one", Get("one"));
  decorate(Birds, "two", Get("two"), RateLimit({ rules: [named("two-short", 9, "1h"), named("two-long", 1, "1h")] }));
  Controller("birds")(Birds);
  const options = { rules: [named("short", 50, "1h"), named("long", 2, "1h")] };
  await using app = await serveControllers({ options, controllers: [Birds] });
  const ask = async (path: string) => (await fetch(`${app.url}/birds/${path}`)).status;
  expect([await ask("one"), await ask("one"), await ask("one")]).toEqual([200, 200, 429]);
  expect([await ask("two"), await ask("two")]).toEqual([200, 429]);
});

test("calls that are not limited are warned of", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  const { app, call } = await resolverBehind(RateLimitGuard, "rpc");
  for (let i = 0; i < 5; i++) expect(await call({}, {})).toBe("ok");
  expect(warned.mock.calls.map(([, options]) => (options as { code: string }).code)).toEqual([
    "SLUICE_UNLIMITED_CONTEXT",
  ]);
  warned.mockRestore();
  await app.close();
});
