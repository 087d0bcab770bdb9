import { expect, test } from "vitest";
import { errorKinds, ServiceError } from "../errors.js";
import { type Problem, problem, problemBody, problemOf } from "./problem.js";

test("a problem takes its status and its remedy from the table of errors", () => {
  for (const [code, { status, remedy }] of Object.entries(errorKinds)) {
    const made = problem(code as Problem["code"], "what happened");
    expect(problemBody(made)).toMatchObject({ status, code, remedy, detail: "what happened", type: "about:blank" });
  }
});

test("no meaning and no remedy mentions a constant of the source code", () => {
  for (const [code, { meaning, remedy }] of Object.entries(errorKinds)) {
    expect(`${meaning} ${remedy}`, code).not.toMatch(/\b[A-Z]+_[A-Z_]+\b/);
  }
});

test("details appear beside the standard members, and mistakes only if there are any", () => {
  const body = problemBody(
    problemOf(new ServiceError("version-mismatch", "late", { details: { currentVersion: 7 } }))!,
  );
  expect(body).toMatchObject({ status: 412, code: "version-mismatch", currentVersion: 7 });
  expect(body).not.toHaveProperty("mistakes");
});

test("an unexpected error is no problem of the client's", () => {
  expect(problemOf(new Error("ENOENT /etc/secret"))).toBeUndefined();
});
