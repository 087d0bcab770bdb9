/** The prefix before every key of a store, so that several products can share a Redis. Pure, and without imports: settings use it. */

// The first brace of a key opens its hash tag, and the other characters are patterns of SCAN and of ACLs.
const OWN_PREFIX = /^(?!.*[{}*?[\]\\])[\x21-\x7e]{0,64}$/;
export const KEY_PREFIX_EXPECTED = `at most 64 printable characters without spaces and { } * ? [ ] \\, such as "shop:"`;

/** Whether a text may precede `KEY_PREFIX` (`keys.ts`). */
export function isKeyPrefix(text: unknown): text is string {
  return typeof text === "string" && OWN_PREFIX.test(text);
}
