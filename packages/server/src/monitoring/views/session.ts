/** The signed-in person. */

/** `GET /admin/v1/session`. */
export interface SessionView {
  readonly name: string;
  readonly role: "viewer" | "editor" | "admin";
  /** The rules come from --rules FILE: they are read-only here, and there are no versions, audit log or named tokens. */
  readonly rulesFrom?: "file";
}
