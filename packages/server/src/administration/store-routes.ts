/** The store's health and memory. Many viewers cost Redis no more than one. */
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import type { StoreView } from "../monitoring/views/store.js";
import { describeRoute } from "./route.js";

const storeView = Type.Unsafe<StoreView>({ type: "object", description: "See docs/store-view.md." });

export function registerStoreRoutes(app: FastifyInstance, readStore: () => Promise<StoreView>): void {
  app.get(
    "/store",
    describeRoute({ role: "viewer", summary: "The store: nodes, memory by rule, calls", reply: storeView }),
    (_request, reply) => readStore().then((view) => reply.send(view)),
  );
}
