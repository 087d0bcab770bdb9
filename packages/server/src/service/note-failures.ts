/** Failed authentication of every door, led to one place: the metric, the log and the audit, and each door's slowing down. */
import type { FastifyRequest } from "fastify";
import type { Configuration } from "../configuration/configuration.js";
import type { RequestAttributes } from "../enforcement/attributes/request-attributes.js";
import { type AttemptSum, type Credential, FailedAuthentication } from "../http/failed-authentication.js";
import type { Log } from "../log.js";
import type { Metrics } from "../monitoring/metrics.js";

type Facts = Parameters<RequestAttributes["networkOf"]>[0];

export interface NotedFailures {
  /** Each resolves as `FailedAuthentication.note` does. */
  ofAdmin(request: FastifyRequest, credential: Credential): Promise<number | undefined>;
  ofDataPlane(facts: Facts): Promise<number | undefined>;
  close(): Promise<void>;
}

export function noteFailures(options: {
  log: Log;
  metrics: Metrics;
  repository: Configuration["repository"];
  networkOf: RequestAttributes["networkOf"];
}): NotedFailures {
  const { log, metrics, repository, networkOf } = options;
  const failures = new FailedAuthentication({
    log,
    count: ({ plane, credential }) => metrics.authenticationFailed({ plane, credential }),
    audit: repository && ((sum) => repository.record(auditEntryOf(sum))),
  });
  return {
    ofAdmin: (request, credential) =>
      failures.note({ address: networkOf(factsOf(request)), plane: "admin", credential }),
    ofDataPlane: (facts) => failures.note({ address: networkOf(facts), plane: "data", credential: "bearer" }),
    close: () => failures.close(),
  };
}

export function factsOf({ socket, headers }: FastifyRequest): Facts {
  return { peer: socket.remoteAddress, headers };
}

/** The address is the target: the actor has no known name. */
function auditEntryOf({ address, addresses, failures }: AttemptSum) {
  const target = address ?? `${addresses} more addresses`;
  return { actor: "unknown", action: "authentication.failed", target, details: { failures } };
}
