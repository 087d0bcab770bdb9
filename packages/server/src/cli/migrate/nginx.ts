/**
 * nginx's `limit_req` and `limit_conn` -> rules. nginx's leaky bucket is GCRA: a rate, and how far a client may run ahead of it.
 * `nodelay` allows `burst` more at once. Without it nginx delays: one at once, and turns up to burst/rate later (`maxWait`).
 * In: the configuration's text. Out: rules, their attributes, and notes. Pure.
 */
import { attributeName, type Migrated, Migration, oneOrList } from "./migrated.js";
import { type Directive, parseNginx } from "./nginx-directives.js";

interface Zone {
  readonly key: string;
  /** Undefined for `limit_conn_zone`. */
  readonly rate: { readonly limit: number; readonly window: "1s" | "1m" } | undefined;
}

/** The scope of a directive. */
interface Place {
  readonly hosts: readonly string[];
  /** Globs; empty: all paths. */
  readonly paths: readonly string[];
  /** A location that cannot be expressed as a glob. */
  readonly unclear: string | undefined;
}

interface Use extends Place {
  readonly directive: Directive;
  readonly dryRun: boolean;
}

const LONGEST_WAIT_MS = 3_600_000;
const everywhere: Place = { hosts: [], paths: [], unclear: undefined };

export function migrateNginx(text: string): Migrated {
  const migration = new Migration();
  const directives = parseNginx(text);
  const zones = new Map<string, Zone>();
  const uses: Use[] = [];
  walk(directives, { place: everywhere, dryRun: false, migration, zones, uses });
  const groups = grouped(uses);
  for (const group of groups) addRule(group, { zones, migration });
  noteSharedZones(groups, migration);
  return migration;
}

interface Walk {
  readonly place: Place;
  readonly dryRun: boolean;
  readonly migration: Migration;
  readonly zones: Map<string, Zone>;
  readonly uses: Use[];
}

function walk(directives: readonly Directive[], context: Walk): void {
  const { place, migration, zones, uses } = context;
  const set = directives.find(({ name }) => name === "limit_req_dry_run" || name === "limit_conn_dry_run");
  const dryRun = set === undefined ? context.dryRun : set.args[0] === "on";
  const names = directives.filter(({ name }) => name === "server_name").flatMap(({ args }) => args);
  const inside = names.length === 0 ? place : { ...place, hosts: hostsOf(names, migration) };
  for (const directive of directives) {
    const { name, args, block, line } = directive;
    if (name === "limit_req_zone" || name === "limit_conn_zone") readZone(directive, { zones, migration });
    else if (name === "limit_req" || name === "limit_conn") uses.push({ directive, dryRun, ...inside });
    else if (name === "limit_req_status" || name === "limit_conn_status") {
      if (args[0] !== "429") migration.note(`line ${line}: ${name} ${args[0]}: Sluice answers 429`);
    } else if (name === "include")
      migration.note(`line ${line}: include ${args.join(" ")} was not read: \`nginx -T\` prints all`);
    else if (block !== undefined && name !== "map" && name !== "geo") {
      walk(block, { ...context, dryRun, place: name === "location" ? locationOf(args, inside) : inside });
    }
  }
  noteInheritance(directives, migration);
}

/** In nginx, limits of an outer level apply only if the inner one has none. */
function noteInheritance(directives: readonly Directive[], migration: Migration): void {
  const limits = (list: readonly Directive[]): boolean => list.some(({ name }) => name === "limit_req");
  const inner = directives.filter(({ block }) => block !== undefined);
  if (limits(directives) && inner.some(({ block }) => limits(block!))) {
    migration.note(
      "a limit_req inside of a block replaces those around it in nginx; here both rules apply, and the stricter one refuses",
    );
  }
}

function readZone({ name, args, line }: Directive, { zones, migration }: Pick<Walk, "zones" | "migration">): void {
  const zone = /^zone=([^:]+)/.exec(args.find((arg) => arg.startsWith("zone=")) ?? "")?.[1];
  const rate = /^rate=(\d+)r\/([sm])$/.exec(args.find((arg) => arg.startsWith("rate=")) ?? "");
  if (zone === undefined || (name === "limit_req_zone" && Number(rate?.[1] ?? 0) === 0)) {
    migration.note(
      `line ${line}: ${name} ${args.join(" ")}: expected zone=NAME:SIZE${name === "limit_req_zone" ? " rate=10r/s" : ""}`,
    );
    return;
  }
  const window = rate?.[2] === "m" ? "1m" : "1s";
  zones.set(zone, { key: args[0]!, rate: rate === null ? undefined : { limit: Number(rate[1]), window } });
}

function hostsOf(names: readonly string[], migration: Migration): string[] {
  return names.flatMap((name) => {
    if (name === "_" || name === "") return [];
    if (name.startsWith("~"))
      migration.note(`server_name ${name}: a regular expression; the rule applies to every host`);
    if (name.startsWith("~")) return [];
    return name.startsWith(".") ? [name.slice(1), `*${name}`] : [name];
  });
}

function locationOf(args: readonly string[], outer: Place): Place {
  const [modifier, path] = args.length > 1 ? [args[0]!, args[1]!] : ["", args[0] ?? "/"];
  if (modifier.startsWith("~") || path.startsWith("@") || path.includes("*"))
    return { ...outer, unclear: args.join(" ") };
  if (modifier === "=") return { ...outer, paths: [path] };
  // A string prefix, not a path prefix: `/api` also matches /apifoo.
  return { ...outer, paths: path === "/" ? [] : [`${path}**`] };
}

/** Uses of one zone with equal numbers share a counter in nginx: they become one rule if a single match can express them. */
function grouped(uses: readonly Use[]): Use[][] {
  const groups = new Map<string, Use[]>();
  for (const use of uses) {
    const { directive, dryRun, hosts, unclear } = use;
    const key = JSON.stringify([directive.name, directive.args, dryRun, hosts, unclear]);
    groups.set(key, [...(groups.get(key) ?? []), use]);
  }
  return [...groups.values()];
}

function noteSharedZones(groups: readonly Use[][], migration: Migration): void {
  const names = groups.map(([use]) => use!.directive).map(({ name, args }) => zoneOf(name, args));
  for (const name of new Set(names.filter((one, at) => names.indexOf(one) !== at))) {
    migration.note(`zone ${name} is used in several ways: nginx counts them together, here each rule counts by itself`);
  }
}

function zoneOf(name: string, args: readonly string[]): string {
  if (name === "limit_conn") return args[0] ?? "";
  return /^zone=(.+)$/.exec(args.find((arg) => arg.startsWith("zone=")) ?? "")?.[1] ?? "";
}

function addRule(
  group: readonly Use[],
  { zones, migration }: { zones: ReadonlyMap<string, Zone>; migration: Migration },
): void {
  const { directive, dryRun, hosts, unclear } = group[0]!;
  const { name, args, line } = directive;
  const zoneName = zoneOf(name, args);
  const zone = zones.get(zoneName);
  if (zone === undefined) {
    migration.note(`line ${line}: ${name}: the zone ${JSON.stringify(zoneName)} is not in this file`);
    return;
  }
  const paths = group.some((use) => use.paths.length === 0) ? [] : [...new Set(group.flatMap((use) => use.paths))];
  if (unclear !== undefined) {
    migration.note(
      `location ${unclear}: no glob says the same; its rule is in shadow mode: write match.path, then enforce it`,
    );
  }
  const match = {
    ...(hosts.length > 0 && { host: oneOrList(hosts) }),
    ...(paths.length > 0 && { path: oneOrList(paths) }),
  };
  const rule = {
    description: `nginx, line ${line}: ${name} ${args.join(" ")}`,
    ...(Object.keys(match).length > 0 && { match }),
    key: keyOf(zone.key, migration),
    ...(name === "limit_conn" ? connNumbers(args, migration) : reqNumbers(args, zone, migration)),
    ...((dryRun || unclear !== undefined) && { mode: "shadow" }),
  };
  migration.add(zoneName, rule);
}

function reqNumbers(args: readonly string[], { rate }: Zone, migration: Migration): Record<string, unknown> {
  const { limit, window } = rate ?? { limit: 1, window: "1s" as const };
  const number = (name: string): number =>
    Number(new RegExp(`^${name}=(\\d+)$`).exec(args.find((arg) => arg.startsWith(`${name}=`)) ?? "")?.[1] ?? 0);
  const burst = number("burst");
  const atOnce = args.includes("nodelay") ? burst : Math.min(burst, number("delay"));
  const waitMs = Math.ceil(((burst - atOnce) * (window === "1s" ? 1_000 : 60_000)) / limit);
  if (waitMs > LONGEST_WAIT_MS)
    migration.note(`${args.join(" ")}: clients would wait longer than an hour; here at most one`);
  const maxWait = `${Math.min(waitMs, LONGEST_WAIT_MS)}ms`;
  return { algorithm: "gcra", limit, window, burst: atOnce + 1, ...(waitMs > 0 && { maxWait }) };
}

function connNumbers(args: readonly string[], migration: Migration): Record<string, unknown> {
  migration.note(
    "limit_conn: places are given back where Sluice sees the request end: its proxy, its middlewares, Envoy; not nginx's auth_request",
  );
  return { algorithm: "concurrency", limit: Number(args[1] ?? 1) };
}

const known: Readonly<Record<string, string>> = {
  binary_remote_addr: "ip",
  remote_addr: "ip",
  realip_remote_addr: "ip",
  host: "host",
  http_host: "host",
  server_name: "host",
  uri: "path",
  document_uri: "path",
  request_uri: "path",
  request_method: "method",
};

/** `$binary_remote_addr$http_x_tenant` becomes [ip, x_tenant]. Text between variables is constant, so it is dropped. */
function keyOf(text: string, migration: Migration): string[] {
  const names = Array.from(text.matchAll(/\$\{?(\w+)\}?/g), ([, variable]) =>
    attributeOf(variable!.toLowerCase(), migration),
  );
  return [...new Set(names)];
}

function attributeOf(variable: string, migration: Migration): string {
  if (variable === "request_uri") migration.note("$request_uri has the query in it; here path has not");
  if (known[variable] !== undefined) return known[variable];
  const [, kind, rest] = /^(http|cookie|jwt_claim)_(.+)$/.exec(variable) ?? [];
  if (kind === undefined || rest === undefined) {
    migration.note(`$${variable}: send it as the attribute ${variable}, for example by a header and --attributes`);
    return variable;
  }
  const name = attributeName(rest);
  const sources = { http: { header: rest.replaceAll("_", "-") }, cookie: { cookie: rest }, jwt_claim: { claim: rest } };
  migration.attributes.set(name, sources[kind as keyof typeof sources]);
  return name;
}
