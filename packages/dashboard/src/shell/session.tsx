/**
 * The signed-in user's name and role, for all pages below. The service authorises each call itself; this only hides what it would refuse.
 */
import { createContext, useContext } from "react";
import type { Role, SessionView } from "../api/shapes.js";

const SessionContext = createContext<SessionView | undefined>(undefined);
export const SessionProvider = SessionContext.Provider;

export function useSession(): SessionView {
  return useContext(SessionContext)!;
}

const ranks: Readonly<Record<Role, number>> = { viewer: 0, editor: 1, admin: 2 };

export function useMay(role: Role): boolean {
  return ranks[useSession().role] >= ranks[role];
}

/** Rules from a file are read-only here, whatever the role. */
export function useMayEditRules(): boolean {
  const isFromFile = useSession().rulesFrom === "file";
  return useMay("editor") && !isFromFile;
}

/** Replaces a control for rules that the user may not use. */
export function RulesReadOnly({ to }: { to: string }) {
  if (useSession().rulesFrom !== "file") return <NeedsRole needed="editor" to={to} />;
  return (
    <p className="soft small">
      Read-only: the rules come from a file (<code>--rules</code>). Change the file, and the service reloads it.
    </p>
  );
}

/** Replaces a control that the user may not use. */
export function NeedsRole({ needed, to }: { needed: Role; to: string }) {
  return (
    <p className="soft small">
      To {to} you need the role {needed}; yours is {useSession().role}.
    </p>
  );
}
