/** The admin token of a service that runs in this folder, if its file can be read. */
import { readFileSync } from "node:fs";

export function readAdminToken(file = ".sluice/admin-token"): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return undefined;
  }
}
