/**
 * Which methods a path answers, from the routes as they are added: so that another method is told 405 with what is allowed, not 404.
 * Segments are compared one by one; no path of a client becomes a pattern.
 */
import type { FastifyInstance } from "fastify";

declare module "fastify" {
  interface FastifyInstance {
    /** Which methods a path answers; absent where nobody collects them. */
    methodsOf?: (path: string) => readonly string[];
  }
}

interface KnownRoute {
  readonly segments: readonly string[];
  readonly methods: readonly string[];
}

/** Before the routes: they are collected as they are added. Returns what a path answers, in the order of the alphabet. */
export function collectMethods(app: FastifyInstance): (path: string) => readonly string[] {
  const routes: KnownRoute[] = [];
  app.addHook("onRoute", ({ url, method }) => {
    // A route for everything below a folder says nothing of a path that is not there.
    if (!url.includes("*")) routes.push({ segments: url.split("/"), methods: [method].flat() });
  });
  const methodsOf = (path: string): readonly string[] => {
    const asked = path.split("/");
    const methods = routes.filter(({ segments }) => fits(segments, asked)).flatMap((route) => route.methods);
    return [...new Set(methods)].sort();
  };
  app.decorate("methodsOf", methodsOf);
  return methodsOf;
}

function fits(segments: readonly string[], asked: readonly string[]): boolean {
  return (
    segments.length === asked.length &&
    segments.every((segment, i) => (segment.startsWith(":") ? asked[i] !== "" : segment === asked[i]))
  );
}
