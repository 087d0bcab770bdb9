/**
 * Knows which methods each path supports, collected from the routes as they are added: other methods get 405 with `Allow`, not 404.
 * Paths are compared segment by segment; no client input ever becomes a pattern.
 */
import type { FastifyInstance } from "fastify";

declare module "fastify" {
  interface FastifyInstance {
    /** The methods of a path, sorted; empty for an unknown path. */
    methodsOf(path: string): readonly string[];
  }
}

interface KnownRoute {
  readonly segments: readonly string[];
  readonly methods: readonly string[];
}

/** Call this before adding routes. */
export function collectMethods(app: FastifyInstance): void {
  const routes: KnownRoute[] = [];
  app.addHook("onRoute", ({ url, method }) => {
    // A wildcard route does not prove that a path below it exists.
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
