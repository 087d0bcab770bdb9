/**
 * Names for settlements: when one is repeated under its name, the store answers whether it was the one that counted. Letters only, because
 * older versions read the digits of the line that it is in (hold.lua).
 */
import { randomBytes } from "node:crypto";

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const LENGTH = 16;

export function nextSettlementName(): string {
  let name = "";
  for (const byte of randomBytes(LENGTH)) name += LETTERS[byte % LETTERS.length];
  return name;
}
