/**
 * Which target of a request is judged, for forward-auth and the proxy: the normal form of what came, or a refusal.
 * In: `paths` of the mapping file. Out: readers of targets; `invalid-request` for a target that servers read in different ways.
 */
import { SluiceError } from "sluice";
import { hasEncodedSlash, normalTarget, type PathOptions, requestPath, unresolvedPath } from "sluice/http";
import type { Mapping } from "./mapping-file.js";

interface JudgedTargets {
  readonly pathOf: (target: string) => string;
  /** The path of a server that leaves `..` where it is; absent if there is none in the target. */
  readonly unresolvedPathOf: (target: string) => string | undefined;
  /** The target that the proxy forwards. */
  readonly normalise: (target: string) => string;
}

export function judgedTargets({ encodedSlashes = "refuse", ...folded }: NonNullable<Mapping["paths"]>): JudgedTargets {
  const options: PathOptions = { ...folded, encodedSlashes: encodedSlashes === "decode" ? "decode" : "keep" };
  const accept = (target: string): string => {
    // Servers written in C may end the path here. Few targets have either; only those are split.
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

/** Hosts are names: case, a dot at the end and the port do not tell them apart (RFC 3986, section 3.2.2; RFC 9110, section 4.2.3). */
export function normalHost(host: string | undefined): string {
  if (host === undefined) return UNKNOWN_HOST;
  const name = host.trim().replace(/:\d*$/, "").replace(/\.$/, "").toLowerCase();
  // Counted together: absent, a client of HTTP/1.0 would escape every rule by host.
  return name === "" ? UNKNOWN_HOST : name;
}

const UNKNOWN_HOST = "unknown";
