import { expect, test } from "vitest";
import { auditFilter, auditQueryIn } from "./audit-address.js";

test("filters are read from the URL, and both days are inclusive", () => {
  const query = auditQueryIn("?author=ann%40example.com&rule=per-ip&since=2026-11-01&until=2026-11-02&range=1h");
  expect(query).toEqual({ author: "ann@example.com", rule: "per-ip", since: "2026-11-01", until: "2026-11-02" });
  expect(auditFilter(query)).toEqual({
    actor: "ann@example.com",
    rule: "per-ip",
    from: "2026-11-01T00:00:00Z",
    to: "2026-11-02T23:59:59.999Z",
  });
});

test.each([
  "",
  "?since=yesterday&until=2026-13-45",
  "?since=2026-02-30",
  "?since=2026-11-01T00:00:00Z",
  "?from=2026-11-01&to=2026-11-02",
])("%s asks for nothing", (search) => {
  expect(auditFilter(auditQueryIn(search))).toEqual({});
});
