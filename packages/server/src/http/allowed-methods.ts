/**
 * Which methods a path answers, collected from the routes as they are added: another method gets 405 with `Allow`, not 404.
 * Segments are compared one by one; no path of a client becomes a pattern.
 */
import type { FastifyInstance } from "fastify";

declare module "fastify" {
  interface FastifyInstance {
    /** The methods that a path answers, sorted; none for an unknown path. */
    methodsOf(path: string): readonly string[];
  }
}

interface KnownRoute {
  readonly segments: readonly string[];
  readonly methods: readonly string[];
}

/** Before the routes. */
export function collectMethods(app: FastifyInstance): void {
  const routes: KnownRoute[] = [];
  app.addHook("onRoute", ({ url, method }) => {
    // A route for everything below a folder says nothing of a path that is not there.
    if (!url.includes("*")) routes.push({ segments: url.split("/"), methods: [method].flat() });
  });
  app.decorate("methodsOf", (path: string) => {
    const asked = path.split("/");
    const methods = routes.filter(({ segments }) => fits(segments, asked)).flatMap((route) => route.methods);
    return [...new Set(methods)].sort();
  });
}

function fits(segments: readonly string[], asked: readonly string[]): boolean {
  return (
    segments.length === asked.length &&
    segments.every((segment, i) => (segment.startsWith(":") ? asked[i] !== "" : segment === asked[i]))
  );
}
