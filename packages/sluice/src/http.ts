/**
 * `sluice/http`: decisions as HTTP answers, and the address of the client; for servers without an adapter.
 *
 *   const { status, headers, body } = answerOf(await limiter.check({ ip: addressOf({ peer, forwarded }) }));
 */
export { type Answer, type AnswerOptions, answerOf } from "./http/answer.js";
export { type ClientAddressOptions, clientAddresses, type Hops, UNKNOWN_ADDRESS } from "./http/client-address.js";
export { PROBLEM_CONTENT_TYPE, type Problem, problemOf } from "./http/problem.js";
export type { HeaderFormat, HeadersOption, LegacyReset } from "./http/rate-limit-fields.js";
export { type RefusalText, refusalText } from "./http/refusal-text.js";
export {
  hasEncodedSlash,
  normalTarget,
  type PathOptions,
  requestPath,
  unresolvedPath,
} from "./http/request-path.js";
export type { TrustedProxies } from "./http/trusted-proxies.js";
