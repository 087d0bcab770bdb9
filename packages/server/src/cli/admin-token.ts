/** The admin token of a service running in this folder, if its file is readable. */
import { readFileSync } from "node:fs";

export function readAdminToken(file = ".sluice/admin-token"): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return undefined;
  }
}
