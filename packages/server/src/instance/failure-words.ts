/** Explains why Redis does not answer, for people who read a page or an alert. The client's raw errors are in the log. Pure. */

const NOT_LISTENING = "nothing listens at its address: Redis is stopped, or the address is wrong";
const UNREACHABLE = "its host cannot be reached";
const LOST = "the connection to Redis is lost";
const LATE = "Redis does not answer in time";
const silences: ReadonlySet<string> = new Set([NOT_LISTENING, UNREACHABLE, LOST, LATE]);

/** The first match wins. */
const wordings: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/WRONGPASS|NOAUTH|invalid password|without any password/, "Redis does not accept the password"],
  [/NOPERM|no permissions|can't run this command/, "Redis does not give its user the rights that are needed"],
  [/max number of clients/, "Redis accepts no more connections (maxclients)"],
  [/LOADING/, "Redis is starting and reads its data"],
  [/\bOOM\b/, "Redis is out of memory (OOM) and refuses writes"],
  [/MISCONF/, "Redis cannot save to its disk and refuses writes"],
  [/READONLY|MASTERDOWN|NOREPLICAS/, "Redis accepts no writes: it is a replica, or lacks replicas"],
  [/CLUSTERDOWN|Hash slot not served/, "a part of the Redis Cluster has no leader"],
  [/DB index is out of range/, "Redis has no database of this number"],
  [/[Ss]entinel/, "no Sentinel names a leader"],
  [/certificate|TLS|wrong version number|packet length/, "no TLS connection to Redis comes about"],
  [/ECONNREFUSED/, NOT_LISTENING],
  [/ENOTFOUND|EAI_AGAIN/, "the name of its host is not known"],
  [/EHOSTUNREACH|ENETUNREACH/, UNREACHABLE],
  [/ECONNRESET|EPIPE|Stream isn't writeable|connection broke|closed|not connected|disconnected/, LOST],
  [/no answer|did not answer|was silent|within|deadline|ETIMEDOUT|timed? ?out/i, LATE],
];

export function causeInWords(error: string): string {
  return wordings.find(([pattern]) => pattern.test(error))?.[1] ?? "Redis does not answer";
}

/** Whether there was no answer at all, as opposed to a refusal: only silence ends as soon as the store answers a probe. */
export function isSilence(error: string): boolean {
  return silences.has(causeInWords(error));
}
