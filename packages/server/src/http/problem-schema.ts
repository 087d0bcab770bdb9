/** Problems in the OpenAPI document: their schema, and the error codes that an operation can return, from the table of errors. */
import Type, { type TSchema } from "typebox";
import { type ErrorCode, errorKinds } from "../errors.js";
import { PROBLEM_TYPE } from "./problem.js";

const text = Type.String();

export const problemMembers = {
  type: text,
  title: text,
  status: Type.Integer(),
  detail: Type.String({ description: "Where, what was expected, what came." }),
  code: Type.Enum(Object.keys(errorKinds), { description: "Stable; docs/errors.md explains each." }),
  remedy: Type.String({ description: "What to do about it." }),
  mistakes: Type.Optional(
    Type.Array(Type.Object({ path: text, message: text }), { description: "`invalid-rules`: all the mistakes." }),
  ),
};

export const problemSchema = Type.Object(problemMembers, {
  title: "Problem",
  description: "RFC 9457 problem details.",
});

/** Errors that any operation can return. */
export const anyErrors: readonly ErrorCode[] = [
  "invalid-request",
  "too-slow",
  "foreign-host",
  "headers-too-large",
  "internal",
];
export const bodyErrors: readonly ErrorCode[] = ["body-too-large", "unsupported-media-type"];

/** One response per status; its description explains the codes. */
export function problemResponses(
  codes: readonly ErrorCode[],
  schema: TSchema = problemSchema,
): Record<number, { description: string; content: Record<string, { schema: TSchema }> }> {
  const statuses = new Set(codes.map((code) => errorKinds[code].status));
  return Object.fromEntries(
    [...statuses].map((status) => {
      const ofStatus = [...new Set(codes)].filter((code) => errorKinds[code].status === status);
      const description = ofStatus.map((code) => `\`${code}\`: ${errorKinds[code].meaning}`).join("\n\n");
      return [status, { description, content: { [PROBLEM_TYPE]: { schema } } }];
    }),
  );
}
