/** `sluice/client`: the caller's side. A fetch that respects limits, and a typed client of the service. Runs wherever `fetch` does. */
export { createFetch, type FetchOptions } from "./client/paced-fetch.js";
export {
  type ClientOptions,
  createClient,
  type RemoteCheckOptions,
  type RemoteDecision,
  type RemoteExplainedRule,
  type RemoteExplanation,
  type RemoteLease,
  type RemoteRequest,
  type ServiceClient,
  ServiceError,
} from "./client/service-client.js";
