/**
 * Determines the request target on which forward-auth and the proxy decide: the normal form of what arrived, or a refusal.
 * In: `paths` of the mapping file. Out: functions of a target; `invalid-request` for a target that different servers read differently.
 */
import { SluiceError } from "sluice";
import { hasEncodedSlash, normalTarget, type PathOptions, requestPath, unresolvedPath } from "sluice/http";
import type { Mapping } from "./mapping-file.js";

interface JudgedTargets {
  readonly pathOf: (target: string) => string;
  /** The path as seen by a server that does not resolve `..`; absent if the target contains none. */
  readonly unresolvedPathOf: (target: string) => string | undefined;
  readonly normalise: (target: string) => string;
}

export function judgedTargets({ encodedSlashes = "refuse", ...folded }: NonNullable<Mapping["paths"]>): JudgedTargets {
  const options: PathOptions = { ...folded, encodedSlashes: encodedSlashes === "decode" ? "decode" : "keep" };
  const accept = (target: string): string => {
    // NUL: servers written in C may end the path here. Few targets contain either form, so only those are split.
    if ((target.includes("%00") || target.includes("\0")) && /%00|\0/.test(target.split("?", 1)[0]!))
      throw refused("expected no %00");
    if (encodedSlashes === "refuse" && hasEncodedSlash(target)) {
      throw refused(
        "expected no %2F, %5C or backslash, which some servers take for a slash; paths.encodedSlashes decides",
      );
    }
    return target;
  };
  return {
    pathOf: (target) => requestPath(accept(target), options),
    unresolvedPathOf: (target) => unresolvedPath(target, options),
    normalise: (target) => normalTarget(accept(target), options),
  };
}

function refused(expected: string): SluiceError {
  return new SluiceError("invalid-request", `path: ${expected}`);
}

/** Normalises case, a trailing dot and the port, none of which tell hosts apart (RFC 3986, section 3.2.2; RFC 9110, section 4.2.3). */
export function normalHost(host: string | undefined): string {
  if (host === undefined) return UNKNOWN_HOST;
  const name = host.trim().replace(/:\d*$/, "").replace(/\.$/, "").toLowerCase();
  // Missing hosts share a counter: if the attribute were absent, an HTTP/1.0 client would escape every rule by host.
  return name === "" ? UNKNOWN_HOST : name;
}

const UNKNOWN_HOST = "unknown";
