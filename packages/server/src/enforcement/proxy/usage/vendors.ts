/**
 * Where each vendor's answers report token usage and contain the model's text. Data, by JSON path (`JsonScanner`).
 * `--usage openai`, `--usage anthropic`, or a JSON pointer for others.
 */
import { isCompletion, pathOf } from "./call-path.js";

/** A vendor's formats: errors, rate limit headers and answers. */
export interface Vendor {
  readonly name: "openai" | "anthropic" | "other";
  /** Paths of numbers. The largest value counts, as vendors report running totals. */
  readonly usage: ReadonlyMap<string, UsageField>;
  /** Counts sent at the start of an answer, which are not final. */
  readonly preliminary: ReadonlySet<string>;
  /** The paths where calls to this target bound the answer's tokens: names that this API ignores bound nothing. */
  boundsOf(target: string): readonly string[];
  /** Whether a string at this path is text produced by the model. */
  isText(path: string): boolean;
  /** Names of text in single-document answers only; under these names, streams repeat earlier text. */
  readonly wholeText: ReadonlySet<string>;
  /** Whether a string at this path is a base64 image or audio (each part costs by its size), or a link to one. */
  mediaAt(path: string): Media | undefined;
  /** Whether an object at this path is a tool's input: its names and numbers count as produced text too. */
  isToolInput(path: string): boolean;
  /** Last steps of all these paths: most values end in another step, so their path need not be built. */
  readonly lastSteps: ReadonlySet<string>;
}

type Media = "base64" | "link";

export type UsageField =
  | "prompt"
  | "input"
  | "completion"
  | "thoughts"
  | "total"
  | "cachedPrompt"
  | "cacheRead"
  | "cacheWrite";

/**
 * Names under which servers report the same figure. `cachedPrompt` is part of the prompt. Anthropic and Bedrock count cache reads and
 * writes in addition to their `input`; a gateway that reports Anthropic's under OpenAI's names (LiteLLM) includes them in its `prompt`.
 * Gemini counts `thoughts` in addition to the completion.
 */
const fieldNames: Readonly<Record<UsageField, readonly string[]>> = {
  prompt: ["prompt_tokens", "promptTokenCount", "prompt_eval_count"],
  input: ["input_tokens", "inputTokens"],
  completion: ["completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens", "eval_count"],
  thoughts: ["thoughtsTokenCount"],
  total: ["total_tokens", "totalTokenCount", "totalTokens"],
  cachedPrompt: [
    "prompt_tokens_details/cached_tokens",
    "input_tokens_details/cached_tokens",
    "cachedContentTokenCount",
  ],
  cacheRead: ["cache_read_input_tokens", "cacheReadInputTokens"],
  cacheWrite: ["cache_creation_input_tokens", "cacheWriteInputTokens"],
};

/**
 * Text within a choice, whole or in deltas. The client's call determines which of these it gets: text at a path missing here is free for a
 * client that disconnects before the usage is reported.
 */
const choiceText = [
  "content",
  "reasoning_content",
  "reasoning",
  "refusal",
  "tool_calls/*/function/arguments",
  "tool_calls/*/custom/input",
  // The legacy form of tool calls, which servers still accept.
  "function_call/arguments",
  "audio/transcript",
  // Mistral's reasoning models answer in parts.
  "content/*/text",
  "content/*/thinking/*/text",
];

const openaiText = new Set([
  ...["delta", "message"].flatMap((part) => choiceText.map((step) => `choices/*/${part}/${step}`)),
  "choices/*/text",
  // The Responses API: its stream repeats complete texts at the end, which are not counted again.
  "delta",
  "output/*/content/*/text",
  "output/*/content/*/refusal",
  "output/*/summary/*/text",
  "output/*/arguments",
  "output/*/input",
  "output/*/code",
  // Assistants runs.
  "delta/content/*/text/value",
  "delta/step_details/tool_calls/*/function/arguments",
  "delta/step_details/tool_calls/*/code_interpreter/input",
]);

/** Images and audio: of chat completions, the Responses API, and the image and audio APIs. */
const openaiMedia = new Map<string, Media>([
  ...["delta", "message"].flatMap((part): [string, Media][] => [
    [`choices/*/${part}/audio/data`, "base64"],
    // OpenRouter sends a data URL.
    [`choices/*/${part}/images/*/image_url/url`, "base64"],
  ]),
  ["data/*/b64_json", "base64"],
  ["data/*/url", "link"],
  ["b64_json", "base64"],
  ["partial_image_b64", "base64"],
  ["output/*/result", "base64"],
  ["item/result", "base64"],
  ["audio", "base64"],
]);

const anthropicText = new Set([
  "delta/text",
  "delta/thinking",
  "delta/partial_json",
  "content/*/text",
  "content/*/thinking",
  // Legacy text completions report no usage at all.
  "completion",
]);

/** At any depth, like other vendors' text. */
const otherMedia = new Map<string, Media>([
  ["data", "base64"],
  ["b64_json", "base64"],
  ["bytes", "base64"],
]);
const otherToolInputs = new Set(["args", "arguments", "input"]);

/** At any depth. */
const otherText = new Set([
  ...["content", "text", "delta", "response", "generated_text", "output"],
  ...["thinking", "reasoning", "reasoning_content"],
  ...["arguments", "partial_json"],
]);

/** Gemini accepts either spelling of each name. */
const geminiConfigs = ["generationConfig", "generation_config"];
const geminiBounds = geminiConfigs.flatMap((config) => [`${config}/maxOutputTokens`, `${config}/max_output_tokens`]);

/** The number of answers that a call requests, each with its own bound. */
export const choiceCounts: readonly string[] = [
  "n",
  "best_of",
  ...geminiConfigs.flatMap((config) => [`${config}/candidateCount`, `${config}/candidate_count`]),
];

/** Every name that bounds an answer: OpenAI's three, Anthropic's, Gemini's, Bedrock's and Ollama's. */
export const allBounds: readonly string[] = [
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  ...geminiBounds,
  "inferenceConfig/maxTokens",
  "options/num_predict",
];
const chatBounds = ["max_tokens", "max_completion_tokens"];
const responseBounds = ["max_output_tokens"];
/** Which of them an API honours, by the end of its path (in lower case); at other paths, any of them. */
const boundsAt: readonly (readonly [end: RegExp, bounds: readonly string[]])[] = [
  [/\/api\/(?:chat|generate)$/, ["options/num_predict"]],
  [/:(?:stream)?generatecontent$/, geminiBounds],
  [/\/converse(?:-stream)?$/, ["inferenceConfig/maxTokens"]],
];

/** llama.cpp prefers this name over OpenAI's if both are present; others ignore it. So it may raise a bound, but does not set one. */
export const LIFTING_BOUND = "n_predict";

const openai = vendor({
  name: "openai",
  boundsOf(target) {
    const path = pathOf(target);
    if (path.endsWith("/chat/completions")) return chatBounds;
    // Text completions never had the newer name, and servers ignore it there.
    if (isCompletion(target)) return ["max_tokens"];
    return path.endsWith("/responses") ? responseBounds : [...chatBounds, ...responseBounds];
  },
  // Kimi's streams report it in the last choice.
  usage: usageUnder(["usage", "response/usage", "choices/*/usage"]),
  preliminary: new Set(),
  textPaths: openaiText,
  mediaPaths: openaiMedia,
  toolInputs: new Set(),
  // A transcription.
  wholeText: new Set(["text"]),
});

const anthropic = vendor({
  name: "anthropic",
  boundsOf: () => ["max_tokens"],
  usage: usageUnder(["usage", "message/usage"]),
  // From message_start; message_delta brings the final count.
  preliminary: new Set(["message/usage/output_tokens"]),
  textPaths: anthropicText,
  mediaPaths: new Map(),
  // In streams it is text (`partial_json`).
  toolInputs: new Set(["content/*/input"]),
  wholeText: new Set(),
});

/** `usage`: a vendor's name, or a JSON pointer to an object of counts or to a single number, the call's cost. */
export function vendorOf(usage: string): Vendor {
  if (usage === "openai") return openai;
  if (usage === "anthropic") return anthropic;
  const pointer = usage === "/" ? "" : usage.slice(1);
  const counts = usageUnder([pointer]);
  return {
    ...vendor({
      name: "other",
      boundsOf: (target) => boundsAt.find(([end]) => end.test(pathOf(target)))?.[1] ?? allBounds,
      usage: pointer === "" ? counts : new Map([...counts, [pointer, "completion"]]),
      preliminary: new Set(),
      textPaths: otherText,
      mediaPaths: otherMedia,
      toolInputs: otherToolInputs,
      wholeText: new Set(),
    }),
    isText: (path) => otherText.has(lastStepOf(path)),
    mediaAt: (path) => otherMedia.get(lastStepOf(path)),
    isToolInput: (path) => otherToolInputs.has(lastStepOf(path)),
  };
}

interface AnswerPaths {
  readonly textPaths: ReadonlySet<string>;
  readonly mediaPaths: ReadonlyMap<string, Media>;
  readonly toolInputs: ReadonlySet<string>;
}

function vendor({
  textPaths,
  mediaPaths,
  toolInputs,
  ...rest
}: Omit<Vendor, "isText" | "mediaAt" | "isToolInput" | "lastSteps"> & AnswerPaths): Vendor {
  const read = [...rest.usage.keys(), ...textPaths, ...rest.wholeText, ...mediaPaths.keys(), ...toolInputs];
  return {
    ...rest,
    isText: (path) => textPaths.has(path),
    mediaAt: (path) => mediaPaths.get(path),
    isToolInput: (path) => toolInputs.has(path),
    lastSteps: new Set(read.map(lastStepOf)),
  };
}

function lastStepOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function usageUnder(objects: readonly string[]): Map<string, UsageField> {
  const found = new Map<string, UsageField>();
  for (const object of objects) {
    for (const field of Object.keys(fieldNames) as UsageField[]) {
      for (const name of fieldNames[field]) found.set(object === "" ? name : `${object}/${name}`, field);
    }
  }
  return found;
}
