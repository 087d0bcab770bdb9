/**
 * Kong's plugins `rate-limiting` and `rate-limiting-advanced`, in a declarative file (decK, DB-less) -> rules.
 * In: the file's text. Out: rules, attributes, notes. Pure.
 */
import { parse } from "yaml";
import { attributeName, type Migrated, Migration, oneOrList } from "./migrated.js";

type Fields = Readonly<Record<string, unknown>>;

interface Scope {
  readonly name: string;
  readonly match: Readonly<Record<string, string | readonly string[]>>;
}

const periods = { second: "1s", minute: "1m", hour: "1h", day: "1d", month: "30d", year: "365d" } as const;

export function migrateKong(text: string): Migrated {
  const migration = new Migration();
  const file = fieldsOf(parse(text));
  const routes = [...listOf(file.routes), ...listOf(file.services).flatMap((service) => listOf(service.routes))];
  const byName = (list: readonly Fields[], name: unknown): Fields => list.find((one) => one.name === name) ?? {};
  const seen: string[] = [];
  const add = (plugins: unknown, scope: Scope): void => {
    for (const plugin of listOf(plugins)) {
      if (addPlugin(plugin, { scope: scopeOf(plugin, scope), migration })) seen.push(scope.name);
    }
  };
  /** A top-level plugin may name its route, service or consumer. */
  const scopeOf = (plugin: Fields, outer: Scope): Scope => {
    const route = nameOf(plugin.route);
    const service = nameOf(plugin.service);
    const consumer = nameOf(plugin.consumer);
    const found =
      route !== undefined
        ? routeScope(byName(routes, route), migration)
        : service !== undefined
          ? serviceScope(byName(listOf(file.services), service), migration)
          : outer;
    return consumer === undefined ? found : { name: `${found.name}-${consumer}`, match: { ...found.match, consumer } };
  };
  add(file.plugins, { name: "global", match: {} });
  for (const service of listOf(file.services)) {
    add(service.plugins, serviceScope(service, migration));
    for (const route of listOf(service.routes)) add(route.plugins, routeScope(route, migration));
  }
  for (const route of listOf(file.routes)) add(route.plugins, routeScope(route, migration));
  for (const consumer of listOf(file.consumers)) {
    const name = String(consumer.username ?? consumer.custom_id ?? "");
    add(consumer.plugins, { name, match: { consumer: name } });
  }
  if (new Set(seen).size > 1) {
    migration.note(
      "Kong runs the most specific instance of a plugin alone; here every rule that matches applies, and the strictest refuses",
    );
  }
  return migration;
}

function serviceScope(service: Fields, migration: Migration): Scope {
  const scopes = listOf(service.routes).map((route) => routeScope(route, migration).match);
  const together = (field: "host" | "method" | "path"): string[] | undefined => {
    const values = scopes.map((match) => match[field]);
    return values.length === 0 || values.includes(undefined) ? undefined : [...new Set(values.flat() as string[])];
  };
  const fields = (["host", "method", "path"] as const).flatMap((field) => {
    const values = together(field);
    return values === undefined ? [] : [[field, oneOrList(values)] as const];
  });
  return { name: String(service.name ?? "service"), match: Object.fromEntries(fields) };
}

function routeScope(route: Fields, migration: Migration): Scope {
  const texts = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);
  const paths = texts(route.paths);
  const expressions = paths.filter((path) => path.startsWith("~"));
  if (expressions.length > 0)
    migration.note(`paths ${expressions.join(", ")}: regular expressions; write match.path by hand`);
  const globs = paths.filter((path) => !path.startsWith("~") && path !== "/").map((path) => `${path}**`);
  const isWhole = globs.length === 0 || globs.length < paths.length;
  const match = {
    ...(texts(route.hosts).length > 0 && { host: oneOrList(texts(route.hosts)) }),
    ...(texts(route.methods).length > 0 && { method: oneOrList(texts(route.methods)) }),
    ...(!isWhole && { path: oneOrList(globs) }),
  };
  return { name: String(route.name ?? "route"), match };
}

function addPlugin(plugin: Fields, { scope, migration }: { scope: Scope; migration: Migration }): boolean {
  const name = String(plugin.name);
  if (/^(response-ratelimiting|ai-rate-limiting.*|graphql-rate-limiting.*)$/.test(name)) {
    migration.note(`${name}: counts by answers; see docs/reservations.md and docs/llm-gateway.md`);
  }
  if (name !== "rate-limiting" && name !== "rate-limiting-advanced") return false;
  const config = fieldsOf(plugin.config);
  const shared = {
    ...(Object.keys(scope.match).length > 0 && { match: scope.match }),
    key: keyOf(config, migration),
    ...(plugin.enabled === false && { mode: "off" }),
    ...(typeof config.fault_tolerant === "boolean" && { onStoreFailure: config.fault_tolerant ? "allow" : "deny" }),
  };
  if (config.error_code !== undefined && config.error_code !== 429) {
    migration.note(`error_code ${config.error_code}: Sluice answers 429`);
  }
  for (const { limit, ...numbers } of numbersOf(name, config, migration)) {
    const description = `Kong: ${name} of ${scope.name}`;
    migration.add(`${scope.name}-${numbers.window}`, { description, ...shared, limit, ...numbers });
  }
  return true;
}

interface Numbers {
  readonly limit: number;
  readonly window: string;
  readonly algorithm: string;
  readonly align?: string;
}

function numbersOf(name: string, config: Fields, migration: Migration): Numbers[] {
  if (name === "rate-limiting") {
    return Object.entries(periods).flatMap(([period, window]): Numbers[] => {
      if (typeof config[period] !== "number") return [];
      const limit = config[period];
      if (period === "month") return [{ algorithm: "fixed-window", limit, window: "month", align: "calendar" }];
      if (period === "year") migration.note("year: windows of 365 days, not of the calendar");
      return [{ algorithm: "fixed-window", limit, window }];
    });
  }
  const list = (value: unknown): number[] => (Array.isArray(value) ? value : [value]).map(Number);
  const windows = list(config.window_size);
  const algorithm = config.window_type === "fixed" ? "fixed-window" : "sliding-counter";
  if (config.namespace !== undefined)
    migration.note("namespace: plugins that share one share counters; merge their rules by hand");
  return list(config.limit).map((limit, at) => ({ algorithm, limit, window: `${windows[at]}s` }));
}

function keyOf(config: Fields, migration: Migration): string[] {
  const by = String(config.limit_by ?? config.identifier ?? "consumer");
  if (by === "ip") return ["ip"];
  if (by === "service" || by === "path") return [];
  if (by === "header") {
    const header = String(config.header_name ?? "");
    const name = attributeName(header);
    migration.attributes.set(name, { header: header.toLowerCase() });
    return [name];
  }
  const attribute = by === "consumer-group" ? "consumer_group" : by;
  migration.note(
    `limit_by ${by}: requests without one do not count here (Kong takes the address): add a rule by ip for them`,
  );
  migration.attributes.set(
    attribute,
    by === "consumer"
      ? { header: "x-consumer-username", trusted: true }
      : { header: `x-${by}-identifier`, trusted: true },
  );
  return [attribute];
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

/** decK references entities as `route: orders` or `route: { name: orders }`. */
function nameOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const { name, username } = fieldsOf(value);
  return typeof name === "string" ? name : typeof username === "string" ? username : undefined;
}
