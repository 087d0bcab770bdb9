/**
 * Logins: guessing one account, trying many accounts from one address, and spraying one password from many addresses.
 * Every attempt is charged before the password is looked at, and given back if it was right: only failures count, and attempts
 * that race each other cannot slip through between a look and a charge.
 *
 *   node examples/recipes/login.mjs
 */
import { createHmac, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createLimiter } from "sluice";
import { virtualClock } from "sluice/testing";
import { parse } from "yaml";

const { rules } = parse(readFileSync(new URL("login.yaml", import.meta.url), "utf8"));
const clock = virtualClock();
const limiter = createLimiter({ clock, rules });
const secret = randomUUID();

async function logIn({ account, password, ip }) {
  // The password itself must not become a key of a counter: a keyed digest tells equal ones, and nothing else.
  const password_digest = createHmac("sha256", secret).update(password).digest("base64url");
  const decision = await limiter.check({ path: "/login", account, ip, password_digest }, { id: randomUUID() });
  if (!decision.allowed) return `refused by ${decision.rule} for ${decision.retryAfterMs / 60_000} min`;
  if (password !== `${account}'s own`) return "wrong password";
  await limiter.refund(decision);
  return "logged in";
}

/** How many of these got as far as the password, and the first refusal. */
async function attack(name, attempts) {
  const answers = [];
  for (const attempt of attempts) answers.push(await logIn(attempt));
  const refused = answers.find((answer) => answer.startsWith("refused"));
  const tried = answers.filter((answer) => answer === "wrong password").length;
  console.log(`${name}: ${tried} of ${attempts.length} tried; ${refused}`);
}

const many = (length, make) => Array.from({ length }, (_, i) => make(i));

for (let i = 0; i < 30; i++) await logIn({ account: "ann", password: "ann's own", ip: "192.0.2.7" });
console.log(`ann, 30 times right: ${await logIn({ account: "ann", password: "ann's own", ip: "192.0.2.7" })}`);
await attack(
  "guessing ann's",
  many(20, (i) => ({ account: "ann", password: `guess ${i}`, ip: "203.0.113.1" })),
);
console.log(`ann meanwhile, from home: ${await logIn({ account: "ann", password: "ann's own", ip: "192.0.2.7" })}`);
await attack(
  "one machine, 100 accounts",
  many(100, (i) => ({ account: `u${i}`, password: `p${i}`, ip: "203.0.113.2" })),
);
await attack(
  "spraying",
  many(100, (i) => ({ account: `s${i}`, password: "Summer2026!", ip: `198.51.100.${i}` })),
);
clock.advance("15m");
await attack(
  "guessing again after the block",
  many(20, (i) => ({ account: "ann", password: `more ${i}`, ip: "203.0.113.1" })),
);
await limiter.close();
