import { expect, test } from "vitest";
import { requestPath } from "./request-path.js";

test.each([
  ["/v1/users?page=2", "/v1/users"],
  ["/v1/users#part", "/v1/users"],
  ["/v1/users#part?x", "/v1/users"],
  ["/", "/"],
  ["/%6cogin", "/login"],
  ["/caf%C3%A9", "/café"],
  ["/a%2Fb", "/a%2Fb"],
  ["/a%2541", "/a%41"],
  ["/%ff", "/%ff"],
  ["http://host:8080/v1/x?y", "/v1/x"],
  ["HTTP://host", "/"],
  ["http://host?x=/y", "/"],
  ["*", "*"],
  ["//double", "//double"],
])("the target %s has the path %s", (target, path) => {
  expect(requestPath(target)).toBe(path);
});
