/**
 * Every page with real figures, light and dark: what axe finds, and that it looks the same in the docs.
 * `npm run screenshots` also writes the images of docs/images; a test run writes nothing.
 */
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { type RedisCluster, startCluster } from "../harness/redis-cluster.js";
import { postJson, type RunningService, startTestService } from "../service/running-service.js";
import { seriousFindings } from "./axe.js";
import { ADMIN, admin, check, makeToken, open, type Person, startBrowser } from "./console.js";
import { exampleAttributes, exampleLoadRules, exampleRules, exampleUtilisation } from "./example-shop.js";

const imageFolder = fileURLToPath(new URL("../../docs/images/", import.meta.url));
const writesImages = process.env.SLUICE_SCREENSHOTS === "1";
/** For images the charts need something to show. */
const TRAFFIC_MS = writesImages ? 100_000 : 4_000;

const pages = [
  { name: "overview", path: "/", ready: /Busiest rules/ },
  { name: "rules", path: "/rules", ready: /checkout-per-user/ },
  { name: "rule", path: "/rules/checkout-per-user", ready: /No mistakes/ },
  { name: "new-rule", path: "/new-rule", ready: /a rule needs an id/ },
  { name: "key", path: "/keys?user=user-3&path=%2Fv1%2Fcheckout%2F7&method=POST", ready: /Rules that apply/ },
  { name: "top-keys", path: "/top-keys", ready: /checkout-per-user/ },
  { name: "spend", path: "/spend", ready: /Top spenders/ },
  { name: "load", path: "/load", ready: /Who waits now/ },
  { name: "alerts", path: "/alerts", ready: /Where alerts are sent/ },
  { name: "store", path: "/store", ready: /Cluster map/ },
  { name: "regions", path: "/regions", ready: /counts in one store/ },
  { name: "history", path: "/history", ready: /in force/ },
  { name: "audit", path: "/audit", ready: /changed rules/ },
  { name: "tokens", path: "/tokens", ready: /grafana/ },
  { name: "wall", path: "/wall", ready: /Busiest rules/ },
] as const;

/** Of each page in the docs: as on a desk; on a phone, in light; on a wide screen, in the dark. */
const desk = { width: 1200, height: 780 };
const otherSizes = { light: { width: 390, height: 844 }, dark: { width: 1920, height: 1080 } } as const;

async function writeImages(page: Page, name: string, scheme: "light" | "dark"): Promise<void> {
  await page.screenshot({ path: `${imageFolder}${name}-${scheme}.png` });
  const size = otherSizes[scheme];
  await page.setViewportSize(size);
  // Charts are drawn anew for the width.
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${imageFolder}${name}-${size.width}.png` });
  await page.setViewportSize(desk);
}

/** Reports of a database, requests of three classes, calls whose cost is settled, and some that wait. */
async function sendLoad(at: string, round: number, leaving: AbortSignal): Promise<void> {
  if (round % 10 === 0) {
    await postJson(`${at}/v1/utilisation`, { value: exampleUtilisation(round), source: "db-1", ttl: "30s" });
  }
  for (const criticality of ["sheddable", "normal", "critical"]) {
    await check(at, { service: "api", tenant: `tenant-${round % 5}`, criticality });
  }
  const { reservation } = await check(at, { org: ["acme", "globex", "acme", "initech"][round % 4]! });
  if (reservation !== undefined) {
    const completion_tokens = 60 + ((round * 37) % 400);
    await postJson(`${at}/v1/settle`, { reservation: reservation.id, attributes: { completion_tokens } });
  }
  if (round % 40 > 2) return;
  const headers = { "x-forwarded-uri": `/partner/${round % 3 === 0 ? "quotes" : "orders"}` };
  void fetch(`${at}/v1/forward-auth`, { headers, signal: leaving }).catch(() => undefined);
}

function sendTraffic(at: string): { stop(): Promise<void> } {
  let isOn = true;
  const leaving = new AbortController();
  const running = (async () => {
    for (let round = 0; isOn; round++) {
      await Promise.all(exampleAttributes(round).map((attributes) => check(at, attributes)));
      await sendLoad(at, round, leaving.signal);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  return {
    async stop() {
      isOn = false;
      await running;
      leaving.abort();
    },
  };
}

/** Leaves one node little room, and gives the service time to say so. */
async function fillMemory({ leaders }: RedisCluster): Promise<void> {
  const used = /used_memory:(\d+)/.exec(await leaders[0]!.cli("INFO", "memory"))![1];
  await leaders[0]!.cli("CONFIG", "SET", "maxmemory", String(Math.round(Number(used) * 1.07)));
  await new Promise((resolve) => setTimeout(resolve, 15_000));
  // The alert holds, and what is counted meanwhile has room.
  await leaders[0]!.cli("CONFIG", "SET", "maxmemory", String(Math.round(Number(used) * 1.16)));
}

describe.skipIf(whyMissing("chromium", "redis"))("every page", () => {
  let browser: Browser;
  let cluster: RedisCluster;
  let service: RunningService;
  let traffic: { stop(): Promise<void> } | undefined;
  const people: Partial<Record<"light" | "dark", Person>> = {};

  beforeAll(async () => {
    [browser, cluster] = await Promise.all([startBrowser(), startCluster({ replicasEach: 1 })]);
    service = await startTestService({
      settings: {
        "admin-token": ADMIN,
        store: cluster.url,
        "store-deadline": "1s",
        record: makeTempFolder("pages"),
      },
    });
    for (const { message, ...rule } of [...exampleRules, ...exampleLoadRules]) {
      await admin(service.http, "PUT", `/rules/${rule.id}?message=${encodeURIComponent(message)}`, rule);
    }
    for (const id of ["starter-per-user", "starter-per-address"]) {
      await admin(service.http, "DELETE", `/rules/${id}?message=${encodeURIComponent("we have our own now")}`);
    }
    await makeToken(service.http, "ann", "editor");
    await makeToken(service.http, "grafana", "viewer");
    for (const colorScheme of ["light", "dark"] as const) {
      const person = await open(browser, { at: service.http, token: ADMIN, colorScheme });
      if (writesImages) await person.page.setViewportSize(desk);
      people[colorScheme] = person;
    }
    traffic = sendTraffic(service.http);
    await new Promise((resolve) => setTimeout(resolve, TRAFFIC_MS));
    if (!writesImages) await traffic.stop();
    if (writesImages) await fillMemory(cluster);
  }, 180_000);
  afterAll(async () => {
    await traffic?.stop();
    await browser?.close();
    await service?.close();
    await cluster?.stop();
  });

  describe.each(["light", "dark"] as const)("%s", (scheme) => {
    test.each(pages)("$name: nothing serious is found by axe", async ({ name, path, ready }) => {
      const { page } = people[scheme]!;
      // Within the page where possible: the overview keeps its live chart.
      if (name !== "overview") await page.goto(path);
      await page.getByText(ready).first().waitFor();
      expect(await seriousFindings(page)).toEqual([]);
      // Of one store there is nothing to see.
      if (writesImages && name !== "regions") await writeImages(page, name, scheme);
      expect(people[scheme]!.complaints).toEqual([]);
    });

    test("a dialog over a page: nothing serious is found by axe", async () => {
      const { page } = people[scheme]!;
      await page.goto("/rules/checkout-per-user");
      await page.getByLabel("Limit", { exact: true }).first().fill("30");
      await page.getByRole("button", { name: "Review and save" }).click();
      await page.getByRole("dialog").locator("ins").waitFor();
      await page
        .getByRole("dialog")
        .getByText(/requests.* would meet the rule; .* newly refused/)
        .waitFor();
      expect(await seriousFindings(page)).toEqual([]);
      if (writesImages) await writeImages(page, "difference", scheme);
      await page.keyboard.press("Escape");
    });

    test("the sign-in page, and a phone: nothing serious is found by axe", async () => {
      await using guest = await open(browser, { at: service.http, colorScheme: scheme });
      await guest.page.getByLabel("Token").waitFor();
      expect(await seriousFindings(guest.page)).toEqual([]);
      if (writesImages) await guest.page.screenshot({ path: `${imageFolder}sign-in-${scheme}.png` });
      await using phone = await open(browser, { at: service.http, token: ADMIN, colorScheme: scheme, width: 360 });
      await phone.page.getByText("Busiest rules").waitFor();
      expect(await seriousFindings(phone.page)).toEqual([]);
    });
  });

  test("the theme switch overrides the system, and is remembered", async () => {
    const { page } = people.light!;
    await page.goto("/audit");
    const ground = (): Promise<string> => page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
    const light = await ground();
    await page.getByRole("button", { name: "Theme: Auto" }).click();
    await page.getByRole("button", { name: "Theme: Light" }).click();
    await page.getByRole("button", { name: "Theme: Dark" }).waitFor();
    const dark = await ground();
    expect(dark).not.toBe(light);
    await page.reload();
    await page.getByRole("button", { name: "Theme: Dark" }).waitFor();
    expect(await ground()).toBe(dark);
  });

  /** The last: the cluster does not come back. */
  test("the overview while the store is away: nothing serious is found by axe", async () => {
    await Promise.all(cluster.nodes.map((node) => node.kill()));
    await check(service.http, { user: "user-1", path: "/v1/checkout/1", method: "POST" });
    for (const scheme of ["light", "dark"] as const) {
      await using person = await open(browser, { at: service.http, token: ADMIN, colorScheme: scheme });
      const { page } = person;
      if (writesImages) await page.setViewportSize(desk);
      await page.getByText(/The store has not answered since/).waitFor();
      if (writesImages) await page.getByText(/figures of/).waitFor();
      expect(await seriousFindings(page)).toEqual([]);
      if (writesImages) await writeImages(page, "outage", scheme);
    }
  });
});
