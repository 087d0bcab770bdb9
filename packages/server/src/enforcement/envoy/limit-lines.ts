/**
 * Domains as lines of text, for the transfer from the config-reading thread to the deciding thread: the latter can parse a hundred thousand
 * of them in slices, while a message of objects would be cloned in one go.
 * Each line is a domain, or a descriptor with its depth. No validation here. Pure.
 */
import { type Sliced, Stride } from "sluice/internal";
import type { Descriptor, Domain, Limit } from "./descriptor-config.js";

type Line =
  | readonly [depth: 0, domain: string]
  | readonly [depth: number, key: string, value: string, flags: number, limit: Limit | null, metadata: unknown];

const flags = { shadow: 1, quota: 2, shareThreshold: 4, detailedMetric: 8, valueToMetric: 16 } as const;
const CHUNK_CHARACTERS = 32 * 1_024;

/** UTF-8; each chunk consists of whole lines. */
export function writeLines(domains: readonly Domain[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  const encoder = new TextEncoder();
  let text = "";
  const write = (line: Line): void => {
    text += `${JSON.stringify(line)}\n`;
    if (text.length < CHUNK_CHARACTERS) return;
    chunks.push(encoder.encode(text));
    text = "";
  };
  const writeAll = (descriptors: readonly Descriptor[], depth: number): void => {
    for (const descriptor of descriptors) {
      const { key, value, limit, metadata } = descriptor;
      let bits = 0;
      for (const [name, bit] of Object.entries(flags)) if (descriptor[name as keyof typeof flags]) bits |= bit;
      write([depth, key, value, bits, limit ?? null, metadata ?? null]);
      writeAll(descriptor.descriptors, depth + 1);
    }
  };
  for (const { domain, descriptors } of domains) {
    write([0, domain]);
    writeAll(descriptors, 1);
  }
  if (text !== "") chunks.push(encoder.encode(text));
  return chunks;
}

export function* readingLines(chunks: readonly Uint8Array[]): Sliced<Domain[]> {
  const stride = new Stride();
  const decoder = new TextDecoder();
  const domains: Domain[] = [];
  /** The lists being filled, by depth. */
  const open: Descriptor[][] = [];
  for (const chunk of chunks) {
    for (const text of decoder.decode(chunk).split("\n")) {
      if (text === "") continue;
      const line = JSON.parse(text) as Line;
      const below: Descriptor[] = [];
      if (line[0] === 0) domains.push({ domain: line[1], descriptors: below });
      else open[line[0] - 1]!.push(descriptorOf(line as Exclude<Line, readonly [0, string]>, below));
      open[line[0]] = below;
      if (stride.isOver()) yield;
    }
  }
  return domains;
}

function descriptorOf(
  [, key, value, bits, limit, metadata]: Exclude<Line, readonly [0, string]>,
  descriptors: readonly Descriptor[],
): Descriptor {
  return {
    key,
    value,
    // Restores absent fields, so that all objects share one hidden class.
    limit: limit === null ? undefined : { ...limit, name: limit.name, countRefused: limit.countRefused },
    shadow: (bits & flags.shadow) !== 0,
    quota: (bits & flags.quota) !== 0,
    shareThreshold: (bits & flags.shareThreshold) !== 0,
    detailedMetric: (bits & flags.detailedMetric) !== 0,
    valueToMetric: (bits & flags.valueToMetric) !== 0,
    metadata: metadata === null ? undefined : (metadata as Descriptor["metadata"]),
    descriptors,
  };
}
