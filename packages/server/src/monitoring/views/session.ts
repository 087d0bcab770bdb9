/** The signed-in person. */

/** `GET /admin/v1/session`: who is signed in. */
export interface SessionView {
  readonly name: string;
  readonly role: "viewer" | "editor" | "admin";
}
