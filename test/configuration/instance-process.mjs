/**
 * An instance in a process of its own, on the built packages: configuration, limiter on Redis and admin API, under its own load.
 * In: its settings as JSON in the first argument. Out, as messages to its parent: its address, then every version as it comes
 * into force; asked with "report", what the checks met.
 */
const settings = JSON.parse(process.argv[2] ?? "{}");
const built = new URL("../../packages/server/dist/", import.meta.url);
const { startConfiguration } = await import(new URL("configuration/configuration.js", built).href);
const { openTokens, registerAdministration } = await import(new URL("administration/administration.js", built).href);
const { createEdge } = await import(new URL("http/edge.js", built).href);
const { createLimiter } = await import("sluice");
const { redisStore } = await import("sluice/redis");

const quiet = () => undefined;
const log = {
  debug: quiet,
  info: quiet,
  warn: quiet,
  error: (/** @type {string} */ message) => console.error(message),
};
/** @param {unknown} message */
const tell = (message) => process.send?.(message);

const configuration = await startConfiguration({ ...settings, log });
const { rules, version } = configuration.current;
// Generous: two cores carry three instances, their load, Redis and PostgreSQL; whether checks stall is measured, not cut off.
const store = redisStore(settings.redisUrl, { deadlineMs: 2_000 });
const limiter = createLimiter({ rules, rulesVersion: version, store });
configuration.onChange((/** @type {import("sluice").RuleDocument & { version: number }} */ book) => {
  limiter.setRules(book.rules, book.version);
  tell({ version: book.version, atMs: Date.now() });
});
await limiter.ready();
const { repository } = configuration;
const tokens = await openTokens({ dataFolder: settings.dataFolder, adminToken: settings.adminToken, repository, log });
const edge = { log, tls: undefined, asksForToken: false, isLameDuck: () => false, isOwnHost: () => true };
const app = createEdge(edge);
await registerAdministration(app, { configuration, limiter, tokens, log });
tell({ url: await app.listen({ port: 0, host: "127.0.0.1" }) });

const met = { checks: 0, failed: 0, degraded: 0, slowestMs: 0 };

async function check() {
  const startedMs = performance.now();
  try {
    const decision = await limiter.check({ user: `u${met.checks % 100}` });
    if (decision.degraded !== undefined) met.degraded++;
    if (decision.checks.length === 0) met.failed++;
  } catch {
    met.failed++;
  }
  met.checks++;
  met.slowestMs = Math.max(met.slowestMs, performance.now() - startedMs);
}

const load = setInterval(() => {
  for (let i = 0; i < settings.checksPerTick; i++) void check();
}, 5);

process.on("message", async (message) => {
  if (message === "report") tell({ met });
  if (message === "reset") met.slowestMs = 0;
  if (message !== "stop") return;
  clearInterval(load);
  await app.close();
  await limiter.close();
  await configuration.close();
  process.disconnect();
});
