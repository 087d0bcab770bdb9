/**
 * What a call's path says about the call. Some servers take the model from the path and ignore the one in the body, so that a client could
 * be counted under a cheap model and served an expensive one. Pure.
 */

/**
 * Normalised, because servers differ in whether a path's case, trailing slash, parameters (`;v=1`) and escaped colons matter: a client must
 * not slip through.
 */
export function pathOf(target: string): string {
  return target
    .split("?", 1)[0]!
    .replace(/;[^/]*/g, "")
    .replace(/%3a/gi, ":")
    .replace(/\/+$/, "")
    .toLowerCase();
}

/** Only these two APIs have `stream_options` and the completion bounds; others reject or ignore unknown fields. */
export function isCompletion(target: string): boolean {
  return pathOf(target).endsWith("/completions");
}

/** Uploads contain no call, and may be larger than any: files and file parts of OpenAI and Anthropic, Gemini's in either form. */
export function isUpload(target: string): boolean {
  return /\/(?:files|uploads\/[^/]+\/parts)$/.test(pathOf(target));
}

/** Here `background: true` requests work that continues after the answer; elsewhere it is an image's background. */
export function runsInBackground(target: string): boolean {
  return pathOf(target).endsWith("/responses");
}

const modelPlaces: readonly RegExp[] = [
  // Azure, and LiteLLM in its format and under the older name, where a model may contain slashes.
  /\/(?:deployments|engines)\/(.+?)\/(?:chat\/completions|images\/[a-z]+|audio\/[a-z]+|[a-z]+)$/,
  // Gemini, and all models on Vertex. Tuned models have other collections.
  /\/(?:models|tunedmodels|endpoints)\/([^/]+):[a-z]+$/,
  // Bedrock.
  /\/model\/([^/]+)\/(?:converse|invoke)[a-z-]*$/,
];

/**
 * The name under which rules and prices see a model: in lower case. Azure and others ignore case, and each spelling would otherwise have
 * its own counter.
 */
export function modelName(name: string): string {
  return name.toLowerCase();
}

/** The model in the path; undefined if the body names it. */
export function modelIn(target: string): string | undefined {
  const path = pathOf(target);
  for (const place of modelPlaces) {
    const name = place.exec(path)?.[1];
    if (name !== undefined) return decoded(name);
  }
  return undefined;
}

/**
 * Whether the answer streams regardless of the body ("always"), or unless the body says otherwise ("by-default", Ollama). Undefined if the
 * body decides.
 */
export function streamsAt(target: string): "always" | "by-default" | undefined {
  const path = pathOf(target);
  if (/:stream[a-z]+$/.test(path) || /\/(?:converse|invoke-with-response)-stream$/.test(path)) return "always";
  return /\/api\/(?:chat|generate)$/.test(path) ? "by-default" : undefined;
}

/** Keeps the raw name if its escapes are invalid: no server finds a model under it. */
function decoded(name: string): string {
  try {
    return modelName(decodeURIComponent(name));
  } catch {
    return name;
  }
}
