/** Five thousand rules in the console: sorted, filtered and paged by the address, changed many at a time, without a long task of the page. */
import type { Rule } from "sluice";
import { beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { seriousFindings } from "./axe.js";
import { admin, check, type OpenConsole, openConsole } from "./console.js";

const rules: Rule[] = Array.from({ length: 5_000 }, (_, i) => ({
  id: `rule-${String(i).padStart(4, "0")}`,
  description: `Part ${i}`,
  match: { path: `/part-${i}/**` },
  key: [i % 2 === 0 ? "user" : "tenant"],
  algorithm: i % 10 === 0 ? "token-bucket" : "fixed-window",
  limit: 5_000 - i,
  window: "1m",
  ...(i % 1_000 === 7 && { tags: ["seven"] }),
}));

describe.skipIf(whyMissing("chromium"))("the list of rules", () => {
  let { page, person, service } = {} as OpenConsole;
  beforeAll(async () => {
    const opened = await openConsole({ path: "/rules", prepare: (at) => admin(at, "PUT", "/rules", { rules }) });
    ({ page, person, service } = opened);
    return opened.close;
  });

  const rowCount = () => page.locator("tbody tr").count();

  test("shows a page of five thousand, scrolls it, and draws no more rows than that", async () => {
    await page.getByText("1 to 100 of 5,000").waitFor();
    await page.evaluate(`
      window.longTasks = [];
      new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((one) => one.duration)))
        .observe({ type: "longtask" });
    `);
    await page.getByLabel("Rules a page").selectOption("250");
    await page.getByText("1 to 250 of 5,000").waitFor();
    for (let i = 0; i < 10; i++) await page.mouse.wheel(0, 2_000);
    await expect.poll(rowCount, { timeout: 60_000 }).toBe(250);
    await page.getByLabel("Search rules").pressSequentially("part-49");
    await page.getByText("1 to 111 of 111").waitFor();
    const tasks = (await page.evaluate("window.longTasks")) as number[];
    const longest = Math.round(Math.max(0, ...tasks));
    // A figure to read: on a machine that is busy with other work no time is asserted.
    console.log(
      `5 000 rules: ${tasks.length} long tasks, the longest ${longest} ms, over 100 ms: ${tasks.filter((one) => one > 100).length}`,
    );
    await expect.poll(rowCount, { timeout: 60_000 }).toBe(111);
    await page.getByLabel("Search rules").fill("");
  });

  test("every column sorts, filters narrow, all of it stands in the address, and Back undoes it", async () => {
    await page.goto("/rules?range=1h");
    await page.getByRole("button", { name: "Limit", exact: true }).click();
    await page.waitForURL(/sort=limit/);
    await page.locator("tbody tr").first().getByText("rule-4999").waitFor();
    expect(await page.getByRole("columnheader", { name: "Limit" }).getAttribute("aria-sort")).toBe("ascending");
    for (const [name, sort] of [
      ["Rule", "rule"],
      ["Applies to", "applies"],
      ["Refused", "-refused"],
      ["Last hour", "traffic"],
    ] as const) {
      await page.getByRole("columnheader").getByRole("button", { name }).click();
      await page.waitForURL(new RegExp(`sort=${sort}`));
    }
    await page.getByLabel("Algorithm").selectOption("token-bucket");
    await page.getByText("1 to 100 of 500").waitFor();
    await page.getByLabel("Attribute").selectOption("user");
    await page.getByLabel("State").selectOption("shadow");
    await page.getByText("No rule matches.").waitFor();
    await page.goBack();
    await page.getByText("1 to 100 of 500").waitFor();
    // Rows are drawn frame by frame, and push the pager down: a click that is aimed at it meanwhile may meet a row.
    await expect.poll(rowCount, { timeout: 60_000 }).toBe(100);
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("101 to 200 of 500").waitFor();
    // A sent link shows the same.
    await page.reload();
    await page.getByText("101 to 200 of 500").waitFor();
    await page.goBack();
    await page.getByText("1 to 100 of 500").waitFor();
    await page.goto("/rules?tag=seven");
    await page.getByRole("link", { name: "rule-0007" }).waitFor();
    expect(await rowCount()).toBe(5);
  });

  test("chosen rules are put in shadow and tagged as one version, and taken back", async () => {
    const { version } = await admin(service.http, "GET", "/rules");
    await page.goto("/rules?tag=seven");
    await page.getByRole("link", { name: "rule-0007" }).waitFor();
    await page.getByLabel("Choose all rules of this page").check();
    await page.getByText("5 rules chosen").waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Shadow", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Shadow" }).click();
    await page.getByText(`5 rules changed, as version ${version + 1}.`).waitFor();
    expect(service.rules.filter(({ mode }) => mode === "shadow").map(({ id }) => id)).toEqual(
      ["0007", "1007", "2007", "3007", "4007"].map((number) => `rule-${number}`),
    );
    await page.getByLabel("Choose rule-1007").check();
    await page.getByRole("button", { name: "Tag …" }).click();
    await page.getByLabel("Tag", { exact: true }).last().fill("team:web");
    await page.getByRole("button", { name: "Review" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Tag" }).click();
    await page.getByRole("button", { name: "#team:web" }).click();
    await page.getByRole("link", { name: "rule-1007" }).waitFor();
    // The list of before has that link, too.
    await expect.poll(rowCount, { timeout: 60_000 }).toBe(1);
    await page.getByLabel("Choose rule-1007").check();
    await page.getByRole("button", { name: "Enable" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable" }).click();
    await page.getByText(`1 rule changed, as version ${version + 3}.`).waitFor();
    expect(service.rules[1_007]).toEqual({ ...rules[1_007], tags: ["seven", "team:web"] });
    await page.getByLabel("Choose rule-1007").check();
    await page.getByRole("button", { name: "Disable" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
    await page.getByText(`1 rule changed, as version ${version + 4}.`).waitFor();
    expect(service.rules[1_007]!.mode).toBe("off");
    await expect(admin(service.http, "POST", "/rules", { ids: ["nobody"], mode: "off" })).rejects.toThrow(/nobody/);
    await expect(admin(service.http, "POST", "/rules", { ids: ["rule-0001"] })).rejects.toThrow(/expected mode/);
    await expect(admin(service.http, "POST", "/rules", { ids: ["rule-0001"], addTags: ["No Tag"] })).rejects.toThrow(
      /tags\[0\]/,
    );
  });

  test("a rule is cloned into a draft of its own, in shadow", async () => {
    await page.goto("/rules/rule-0002");
    await page.getByRole("link", { name: "Clone" }).click();
    await page.getByRole("heading", { name: "New rule", exact: true }).waitFor();
    expect(await page.getByLabel("Id", { exact: true }).inputValue()).toBe("rule-0002-copy");
    await page.getByRole("button", { name: "Review and create" }).click();
    await page.getByRole("button", { name: "Create rule" }).click();
    await page.getByText("Created, and in force").waitFor();
    expect(service.rules.at(-1)).toEqual({ ...rules[2], id: "rule-0002-copy", mode: "shadow" });
    expect(person.complaints).toEqual([]);
  });
});

describe.skipIf(whyMissing("chromium"))("the list of keys", () => {
  const ADDED = 60;
  const rule: Rule = { id: "all", key: ["user"], algorithm: "fixed-window", limit: 1_000, window: "1h" };
  const send = async (at: string, user: number, times: number): Promise<void> => {
    for (let n = 0; n < times; n++) await check(at, { user: `u${user}.` });
  };
  let { page, person, service } = {} as OpenConsole;
  beforeAll(async () => {
    const opened = await openConsole({
      path: "/top-keys",
      async prepare(at) {
        await admin(at, "PUT", "/rules", { rules: [rule] });
        // In this order: the first by far, the last with one request.
        for (let user = 0; user < 130; user++) await send(at, user, user < 100 ? 4 : 2);
      },
    });
    ({ page, person, service } = opened);
    return opened.close;
  });

  test("a key that rises between two pages is lost to neither, and the one that it pushes down is not on both", async () => {
    const rows = async (): Promise<string[]> => {
      const texts = await page.locator("tbody tr .attribute").allTextContents();
      return texts.map((text) => text.replace("user=", ""));
    };
    await page.getByText("1 to 100", { exact: true }).waitFor({ timeout: 30_000 });
    await expect.poll(rows, { timeout: 60_000 }).toHaveLength(100);
    const ranked = async (limit: number): Promise<string[]> =>
      (await admin(service.http, "GET", `/keys/top?group=client&limit=${limit}`)).keys.map(
        ({ attributes }: { attributes: { user: string } }) => attributes.user,
      );
    await expect.poll(() => ranked(200), { timeout: 30_000 }).toHaveLength(130);
    // The page is read no more, as between two polls.
    await page.route(/keys\/top\?(?!.*limit=2000)(?!.*offset=[1-9])/, () => undefined);
    const first = await rows();
    const risen = (await ranked(200)).filter((user) => !first.includes(user)).slice(0, 3);
    for (const user of risen) await send(service.http, Number(/\d+/.exec(user)), ADDED);
    await expect.poll(async () => (await ranked(3)).sort(), { timeout: 30_000 }).toEqual([...risen].sort());
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText(/^101 to 130/).waitFor();
    await expect.poll(rows, { timeout: 60_000 }).toHaveLength(30);
    const both = [...first, ...(await rows())];
    expect(new Set(both).size).toBe(130);
    expect(person.complaints).toEqual([]);
  });
});
