/** Collects failed authentication from every entry point: feeds the metric, the log and the audit, and throttles each. */
import type { FastifyRequest } from "fastify";
import type { Configuration } from "../configuration/configuration.js";
import type { RequestAttributes } from "../enforcement/attributes/request-attributes.js";
import {
  type AttemptSum,
  type Credential,
  type FailedAttempt,
  FailedAuthentication,
} from "../http/failed-authentication.js";
import type { Log } from "../log.js";
import type { Metrics } from "../monitoring/metrics.js";

type Facts = Parameters<RequestAttributes["networkOf"]>[0];

export interface NotedFailures {
  /**
   * Each resolves when the answer may go out; with the seconds until its address is unthrottled if that has failed too often. If there is
   * no capacity to delay the answer, the connection is closed without one, unless it belongs to a proxy.
   */
  ofAdmin(request: FastifyRequest, credential: Credential): Promise<number | undefined>;
  ofDataPlane(request: FastifyRequest): Promise<number | undefined>;
  ofCall(facts: Facts, hangUp: () => void): Promise<number | undefined>;
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
  const note = async (facts: Facts, attempt: Omit<FailedAttempt, "address">, hangUp: () => void) => {
    const address = networkOf(facts);
    const slowed = await failures.note({ ...attempt, address });
    // A proxy's connection carries other clients' requests, and a proxy that loses some may mark this service as down.
    const speaksForItself = address === networkOf({ ...facts, headers: {} });
    if (slowed?.isHeld === false && speaksForItself) hangUp();
    return slowed?.waitSeconds;
  };
  const hangingUp = (request: FastifyRequest) => () => void request.raw.socket.destroy();
  return {
    ofAdmin: (request, credential) => note(factsOf(request), { plane: "admin", credential }, hangingUp(request)),
    ofDataPlane: (request) => note(factsOf(request), { plane: "data", credential: "bearer" }, hangingUp(request)),
    ofCall: (facts, hangUp) => note(facts, { plane: "data", credential: "bearer" }, hangUp),
    close: () => failures.close(),
  };
}

function factsOf({ socket, headers }: FastifyRequest): Facts {
  return { peer: socket.remoteAddress, headers };
}

/** The address goes into the target, as the actor is unknown. */
function auditEntryOf({ address, addresses, failures }: AttemptSum) {
  const target = address ?? `${addresses} more addresses`;
  return { actor: "unknown", action: "authentication.failed", target, details: { failures } };
}
