import { expect, test } from "vitest";
import { isCompletion, isUpload, modelIn, runsInBackground, streamsAt } from "./call-path.js";

test("streams are asked for usage in any spelling of the completions path", () => {
  const spelled = ["", "/", "?a", ";a=b", ";a/?b"].map((end) => `/v1/chat/completions${end}`);
  expect([...spelled, "/V1/COMPLETIONS"].map(isCompletion)).toEqual(Array(6).fill(true));
  expect(["/v1/responses", "/v1/models?x=/completions", "/v1/completions/1"].map(isCompletion)).toEqual(
    Array(3).fill(false),
  );
});

test("only a few paths are uploads; a form elsewhere is a call", () => {
  const uploads = [
    "/v1/files",
    "/V1/Files/?a",
    "/v1/uploads/up_1/parts",
    "/v1/containers/c/files",
    "/upload/v1beta/files",
  ];
  const calls = [
    "/v1/audio/transcriptions",
    "/v1/images/edits",
    "/v1/files/f/x",
    "/v1/x?/files",
    "/v1/parts",
    "/v1/videos",
  ];
  expect([uploads.map(isUpload), calls.map(isUpload)]).toEqual([Array(5).fill(true), Array(6).fill(false)]);
});

test("only the Responses API has background work", () => {
  expect(["/v1/responses", "/V1/responses/?x", "/v1/images/generations"].map(runsInBackground)).toEqual([
    true,
    true,
    false,
  ]);
});

test.each([
  ["/openai/deployments/gpt-5/chat/completions?api-version=1", "gpt-5"],
  ["/openai/deployments/GPT-5/embeddings/", "gpt-5"],
  ["/deployments/a/b/chat/completions", "a/b"],
  ["/deployments/chat/chat/completions", "chat"],
  ["/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", "gemini-3-pro"],
  ["/v1/projects/p/publishers/anthropic/models/claude-x:rawPredict", "claude-x"],
  ["/model/anthropic.claude-v1%3A0/converse", "anthropic.claude-v1:0"],
  ["/model/m/invoke-with-response-stream", "m"],
  ["/v1beta/models/gemini-3-pro%3AgenerateContent", "gemini-3-pro"],
  ["/v1beta/models/ft%3ag%3astreamGenerateContent", "ft:g"],
  ["/v1beta/tunedModels/mine-1:generateContent", "mine-1"],
  ["/v1/projects/p/locations/l/endpoints/12:streamRawPredict", "12"],
  ["/engines/a/b/chat/completions", "a/b"],
  ["/model/%zz/converse", "%zz"],
  ["/v1/chat/completions?x=/deployments/a/completions", undefined],
  ["/v1/models/gpt-5", undefined],
  ["/v1/responses", undefined],
])("the path %s names the model %s", (target, model) => {
  expect(modelIn(target)).toBe(model);
});

test.each([
  ["/v1beta/models/g:streamGenerateContent", "always"],
  ["/v1beta/models/g%3AstreamGenerateContent", "always"],
  ["/v1beta/models/g:generateContent", undefined],
  ["/model/m/converse-stream", "always"],
  ["/model/m/invoke-with-response-stream", "always"],
  ["/model/m/converse", undefined],
  ["/api/chat", "by-default"],
  ["/api/generate/?x", "by-default"],
  ["/v1/chat/completions", undefined],
])("answers at %s stream: %s", (target, streams) => {
  expect(streamsAt(target)).toBe(streams);
});
