/** What the dashboard must withstand, in a real Chromium: people with too small a role, pages of other origins, and text that wants to be code. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RunningService, startTestService } from "../service/running-service.js";
import { ADMIN, admin, check, makeToken, open, startBrowser } from "./console.js";

const code = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`;

describe.skipIf(whyMissing("chromium"))("in a browser", () => {
  let browser: Browser;
  let service: RunningService;
  beforeAll(async () => {
    [browser, service] = await Promise.all([startBrowser(), startTestService({ settings: { "admin-token": ADMIN } })]);
    await admin(service.http, "PUT", `/rules/by-agent?message=${encodeURIComponent(`why ${code}`)}`, {
      description: `By agent ${code}`,
      match: { path: `/${code}` },
      key: ["user-agent"],
      algorithm: "fixed-window",
      limit: 3,
      window: "1h",
      candidate: { limit: 2 },
    });
    for (let i = 0; i < 5; i++) await check(service.http, { "user-agent": code, path: `/${code}` });
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  test("a viewer sees every page but tokens, without a control that changes anything, and is told why", async () => {
    const token = await makeToken(service.http, "reader", "viewer");
    await using viewer = await open(browser, { at: service.http, token, path: "/rules" });
    const { page } = viewer;
    await page.getByText("To change rules you need the role editor; yours is viewer.").waitFor();
    expect(await page.getByRole("link", { name: "New rule" }).count()).toBe(0);
    expect(await page.getByRole("link", { name: "Tokens" }).count()).toBe(0);
    await page.getByRole("link", { name: "by-agent" }).click();
    await page.getByText("To change it you need the role editor").waitFor();
    await page.getByText("To promote it you need the role editor").waitFor();
    for (const name of [/Delete/, /Save/, /Promote/, /Restore/]) {
      expect(await page.getByRole("button", { name }).count(), String(name)).toBe(0);
    }
    await page.goto("/history");
    await page.getByText("Version 1", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: /Roll back/ }).count()).toBe(0);
    await page.goto("/keys?user=42");
    await page.getByText("To reset a key you need the role editor").waitFor();
    expect(await page.getByRole("button", { name: /Reset/ }).count()).toBe(0);
    for (const path of ["/new-rule", "/tokens"]) {
      await page.goto(path);
      await page.getByText(/you need the role/).waitFor();
    }
    expect(viewer.complaints).toEqual([]);
  });

  test("a viewer who calls the API from the page, with the session's cookie, is refused", async () => {
    const token = await makeToken(service.http, "curious", "viewer");
    await using viewer = await open(browser, { at: service.http, token });
    const before = service.rulesVersion;
    const calls = [
      ["PUT", "/rules", { rules: [] }],
      ["DELETE", "/rules/by-agent"],
      ["POST", "/rules/by-agent/promote"],
      ["POST", "/versions/1/rollback"],
      ["POST", "/keys/reset", { rule: "by-agent", attributes: { "user-agent": "x" } }],
      ["POST", "/tokens", { name: "mine", role: "admin" }],
    ];
    const statuses = await viewer.page.evaluate(
      async (all) =>
        await Promise.all(
          all.map(async ([method, path, body]) => {
            const answer = await fetch(`/admin/v1${path}`, {
              method: method as string,
              headers: { "content-type": "application/json", "x-sluice-dashboard": "1" },
              ...(body !== undefined && { body: JSON.stringify(body) }),
            });
            return answer.status;
          }),
        ),
      calls,
    );
    expect(statuses).toEqual(calls.map(() => 403));
    expect(service.rulesVersion).toBe(before);
  });

  test("a page on another port of the same host can neither change nor read anything with the visitor's session", async () => {
    // Another port is the same site to a browser: SameSite=Strict alone would send the cookie.
    const hostile = createServer((_request, response) => {
      response.setHeader("content-type", "text/html");
      response.end("<!doctype html><title>free tokens</title><form id=f method=post></form>");
    });
    await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
    try {
      await using victim = await open(browser, { at: service.http, token: ADMIN });
      const before = service.rulesVersion;
      const page = await victim.context.newPage();
      await page.goto(`http://127.0.0.1:${(hostile.address() as AddressInfo).port}/`);
      const read = await page.evaluate(async (at) => {
        const attempts = [
          fetch(`${at}/admin/v1/rules`, { credentials: "include" }),
          fetch(`${at}/admin/v1/rules/by-agent`, { method: "DELETE", credentials: "include" }),
          fetch(`${at}/admin/v1/rules/by-agent`, {
            method: "DELETE",
            credentials: "include",
            headers: { "x-sluice-dashboard": "1" },
          }),
          fetch(`${at}/admin/v1/versions/1/rollback`, { method: "POST", credentials: "include", mode: "no-cors" }),
          fetch(`${at}/admin/v1/tokens`, {
            method: "POST",
            credentials: "include",
            mode: "no-cors",
            body: '{"name":"evil","role":"admin"}',
          }),
        ];
        const settled = await Promise.allSettled(attempts);
        return settled.filter((one) => one.status === "fulfilled" && one.value.type !== "opaque").length;
      }, service.http);
      expect(read).toBe(0);
      // A form, which needs no permission to be sent anywhere.
      await page.evaluate(`(() => {
        const form = document.querySelector("form");
        form.action = ${JSON.stringify(`${service.http}/admin/v1/versions/1/rollback`)};
        form.submit();
      })()`);
      await page.waitForURL(/rollback/);
      expect(await page.textContent("body")).toContain("cross-origin");
      // Nor can it show the dashboard in a frame.
      await page.goto(`http://127.0.0.1:${(hostile.address() as AddressInfo).port}/`);
      await page.evaluate(`(() => {
        const frame = document.createElement("iframe");
        frame.src = ${JSON.stringify(service.http)};
        document.body.append(frame);
        return new Promise((resolve) => { frame.onload = resolve; });
      })()`);
      expect(page.frames()[1]?.url()).not.toContain(service.http);
      expect(service.rulesVersion).toBe(before);
      expect(await admin(service.http, "GET", "/tokens")).not.toMatchObject({ tokens: [{ name: "evil" }] });
    } finally {
      hostile.closeAllConnections();
      hostile.close();
    }
  });

  test("scripts and HTML in descriptions, reasons, keys and user agents are shown as text on every page", async () => {
    await using person = await open(browser, { at: service.http, token: ADMIN, path: "/rules" });
    const { page } = person;
    const shown = async (path: string): Promise<void> => {
      await page.goto(path);
      await page.getByText(code, { exact: false }).first().waitFor();
      expect(await page.evaluate("window.pwned"), path).toBeUndefined();
      expect(await page.locator("main img[src='x'], main script").count(), path).toBe(0);
    };
    await shown("/rules");
    await shown("/rules/by-agent");
    await shown("/history");
    await shown("/audit");
    await shown("/top-keys");
    await page.goto(`/keys?user-agent=${encodeURIComponent(code)}&path=${encodeURIComponent(`/${code}`)}`);
    await page.getByText("It would be refused now.").waitFor();
    expect(await page.getByLabel("Attribute 1, value").inputValue()).toBe(code);
    expect(await page.evaluate("window.pwned")).toBeUndefined();
    await page.goto(`/rules/${encodeURIComponent(code)}`);
    await page.getByText("There is no rule of this id.").waitFor();
    expect(await page.evaluate("window.pwned")).toBeUndefined();
    expect(person.complaints).toEqual([]);
  });

  test("the browser itself refuses inline script, other hosts and text as HTML on our pages", async () => {
    await using person = await open(browser, { at: service.http, token: ADMIN });
    const refused = await person.page.evaluate(`(async () => {
      const broken = [];
      document.addEventListener("securitypolicyviolation", (event) => broken.push(event.effectiveDirective));
      const script = document.createElement("script");
      let trusted = "allowed";
      try { script.textContent = "window.pwned = 1"; } catch { trusted = "refused"; }
      document.body.append(script);
      try { document.body.insertAdjacentHTML("beforeend", "<b>x</b>"); } catch { broken.push("html"); }
      await fetch("http://127.0.0.1:9/").catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 200));
      return { broken, pwned: window.pwned, trusted };
    })()`);
    expect(refused).toMatchObject({ broken: expect.arrayContaining(["html", "connect-src"]) });
    expect((refused as { pwned?: number }).pwned).toBeUndefined();
  });
});
