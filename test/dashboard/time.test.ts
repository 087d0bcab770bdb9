/** The shown time: one for all pages, in the address; zoomed by dragging, compared with the past, in a zone that is named. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RunningService, startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, admin, open, type Person, startBrowser } from "./console.js";
import { pastTraffic } from "./past-traffic.js";

const rule = { id: "api", key: ["user"], algorithm: "fixed-window", limit: 100, window: "1m" };

describe.skipIf(whyMissing("chromium"))("the shown time", () => {
  let browser: Browser;
  let service: RunningService;
  let person: Person;
  let page: Page;
  const nowMs = Date.now();

  beforeAll(async () => {
    [browser, service] = await Promise.all([
      startBrowser(),
      startTestService({
        settings: { "admin-token": ADMIN },
        files: { "monitoring-history": pastTraffic({ nowMs, rule: "api" }) },
      }),
    ]);
    await admin(service.http, "PUT", "/rules?message=the%20first%20limit", { rules: [rule] });
    await admin(service.http, "PUT", "/rules/api", { ...rule, candidate: { limit: 50 } });
    await admin(service.http, "POST", "/rules/api/promote?message=fifty%20will%20do");
    person = await open(browser, { at: service.http, token: ADMIN });
    page = person.page;
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  const chart = (name: string) => page.getByRole("img", { name: new RegExp(`^${name}`) });
  const parameter = (name: string): string | null => new URL(page.url()).searchParams.get(name);

  test("eight days and a custom range are answered in whole steps, and bad times are refused by name", async () => {
    const eight = await admin(service.http, "GET", `/stats?from=${nowMs - 8 * 86_400_000}&to=${nowMs}`);
    expect(eight.stepMs).toBe(900_000);
    expect(eight.window).toBe("range");
    expect(eight.total.points.length).toBeGreaterThanOrEqual(8 * 96);
    expect(eight.total.points.length).toBeLessThanOrEqual(8 * 96 + 1);
    expect(eight.total.latency.p50Ms).toBeLessThanOrEqual(eight.total.latency.p95Ms);
    const minutes = await admin(service.http, "GET", `/stats?from=${nowMs - 5 * 60_000}&to=${nowMs}`);
    expect(minutes.stepMs).toBe(60_000);
    const times = await admin(service.http, "GET", `/stats?from=${new Date(nowMs - 3_600_000).toISOString()}`);
    expect(times.stepMs).toBe(60_000);
    for (const [query, message] of [
      ["from=yesterday", /from: expected milliseconds/],
      ["to=1", /from: expected a time beside to/],
      ["from=5&to=5", /to: expected a time after from/],
      ["window=hour&from=1", /window: expected none/],
    ] as const) {
      await expect(admin(service.http, "GET", `/stats?${query}`)).rejects.toThrow(message);
    }
  });

  test("a range that is chosen on one page stands in the address, and goes along to the others", async () => {
    await page.getByLabel("Time", { exact: true }).selectOption("6h");
    await chart("Decisions a second").waitFor();
    expect(parameter("range")).toBe("6h");
    await page.getByRole("link", { name: "Rules", exact: true }).click();
    await page.getByRole("columnheader", { name: /Last 6 hours/ }).waitFor();
    expect(parameter("range")).toBe("6h");
    await page.getByRole("link", { name: "api", exact: true }).click();
    await chart("Checks a second").waitFor();
    expect(await page.getByLabel("Time", { exact: true }).inputValue()).toBe("6h");
    await page.goBack();
    await page.goBack();
    await page.getByText("Busiest rules").waitFor();
    expect(parameter("range")).toBe("6h");
    // A sent link shows the same.
    await page.reload();
    expect(await page.getByLabel("Time", { exact: true }).inputValue()).toBe("6h");
  });

  test("dragging over a chart zooms all pages, and Back undoes it", async () => {
    const plot = page.locator(".u-over").first();
    const { x, y, width, height } = (await plot.boundingBox())!;
    await page.mouse.move(x + width * 0.25, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width * 0.5, y + height / 2, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/from=/);
    const spanMs = Date.parse(parameter("to")!) - Date.parse(parameter("from")!);
    // A quarter of six hours, as well as a pixel tells it.
    expect(spanMs).toBeGreaterThan(80 * 60_000);
    expect(spanMs).toBeLessThan(100 * 60_000);
    expect(await page.getByLabel("Time", { exact: true }).inputValue()).toBe("custom");
    await page.goBack();
    await page.waitForURL(/range=6h/);
  });

  test("the day before is a faint line, with the values of then", async () => {
    await page.getByLabel("Compare with").selectOption("day");
    // The line is named before its figures have come.
    await page.locator(".legend li", { hasText: /^Refused a day before\s*2\/s/ }).waitFor();
    await page.getByText("Allowed a day before").waitFor();
    expect(parameter("compare")).toBe("day");
    for (const name of ["p50", "p95", "p99"]) await page.locator(".legend li", { hasText: name }).first().waitFor();
    expect(await seriousFindings(page)).toEqual([]);
  });

  test("every range from five minutes to eight days is drawn, and the week before beside it", async () => {
    for (const range of ["5m", "15m", "1h", "6h", "1d", "2d", "8d"]) {
      await page.getByLabel("Time", { exact: true }).selectOption(range);
      await page.waitForURL(new RegExp(`range=${range}`));
      // The traffic of the history, not an empty chart.
      await page.locator(".figure.allowed dd", { hasText: /[1-9]/ }).first().waitFor();
      await chart("Decisions a second").waitFor();
    }
    await page.getByLabel("Time", { exact: true }).selectOption("6h");
    await page.getByLabel("Compare with").selectOption("week");
    await page.locator(".legend li", { hasText: /^Allowed a week before\s*[1-9]/ }).waitFor();
  });

  test("changes and promotions are markers that lead to their version", async () => {
    await page.goto("/?range=1h");
    const marker = page.getByRole("link", { name: /Candidate promoted, version 4: fifty will do/ }).first();
    await marker.click();
    await page.getByRole("heading", { name: "History" }).waitFor();
    await page.getByRole("button", { name: "Hide changes of version 4" }).waitFor();
    expect(parameter("range")).toBe("1h");
  });

  test("from, to and the time zone are typed, shown, and kept in the address", async () => {
    await page.goto("/?range=1h");
    await page.getByRole("button", { name: /Time and time zone/ }).click();
    await page.getByLabel("Time zone").fill("Mars/Olympus");
    await page.getByText("There is no time zone of this name.").waitFor();
    await page.getByLabel("Time zone").fill("Asia/Kathmandu");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByRole("button", { name: "Time and time zone: Asia/Kathmandu" }).waitFor();
    expect(parameter("zone")).toBe("Asia/Kathmandu");
    await page.getByRole("button", { name: /Time and time zone/ }).click();
    await page.getByLabel("From").fill("2026-01-02T10:00:00");
    await page.getByLabel("To", { exact: true }).fill("2026-01-02T12:00:00");
    await page.getByRole("button", { name: "Show" }).click();
    await page.waitForURL(/from=/);
    // Kathmandu is 5:45 ahead of UTC.
    expect(parameter("from")).toBe("2026-01-02T04:15:00Z");
    await page.getByText("Nothing was counted in this time.").waitFor();
    expect(person.complaints).toEqual([]);
  });

  const typeTime = async (fields: Readonly<Record<string, string>>): Promise<void> => {
    await page.getByRole("button", { name: /Time and time zone/ }).click();
    for (const [name, value] of Object.entries(fields)) await page.getByLabel(name, { exact: true }).fill(value);
  };

  test("a date that is typed key by key is no time until its year is there, and nothing breaks on the way", async () => {
    await page.goto("/?range=1h&zone=UTC");
    await page.getByRole("button", { name: /Time and time zone/ }).click();
    await page.getByLabel("From").focus();
    await page.keyboard.type("01022");
    await page.getByText("Expected a date and a time.").waitFor();
    await page.keyboard.type("026");
    await page.getByText("Expected a date and a time.").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Show" }).click();
    await page.waitForURL(/from=2026-01-02T/);
    expect(person.complaints).toEqual([]);
  });

  test("times are read in the zone that is chosen beside them; an hour that clocks skip is named, one that comes twice is whole", async () => {
    await page.goto("/?range=1h&zone=UTC");
    await typeTime({ "Time zone": "Europe/Berlin", From: "2026-03-29T02:30:00", To: "2026-03-29T05:00:00" });
    await page.getByText("Clocks skip this time in Europe/Berlin.").waitFor();
    expect(await page.getByRole("button", { name: "Show" }).isDisabled()).toBe(true);
    await page.getByLabel("From").fill("2025-10-26T02:30:00");
    await page.getByLabel("To", { exact: true }).fill("2025-10-26T02:45:00");
    await page.getByRole("button", { name: "Show" }).click();
    await page.waitForURL(/from=/);
    expect([parameter("zone"), parameter("from"), parameter("to")]).toEqual([
      "Europe/Berlin",
      "2025-10-26T00:30:00Z",
      "2025-10-26T01:45:00Z",
    ]);
  });

  test("a range that begins before all that is kept says where it begins", async () => {
    const day = (ago: number) => new Date(nowMs - ago * 86_400_000).toISOString();
    await page.goto(`/?from=${day(20)}&to=${day(1)}&zone=UTC`);
    await page.getByText(/What is kept begins on \d+ \w+, \d\d:\d\d\./).waitFor();
    await chart("Decisions a second").waitFor();
    await page.goto(`/?from=1900-01-01T00:00:00Z&to=${day(1)}&zone=UTC`);
    await page.getByText(/What is kept begins on/).waitFor();
    expect(person.complaints).toEqual([]);
  });
});
