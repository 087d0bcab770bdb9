/** The signed-in name and role, for every page below. The service authorises each call itself; this only saves a refusal. */
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

/** Stands where a control would be. */
export function NeedsRole({ needed, to }: { needed: Role; to: string }) {
  return (
    <p className="soft small">
      To {to} you need the role {needed}; yours is {useSession().role}.
    </p>
  );
}
