/** The navigation rail: pages, the signed-in user, the theme, sign-out. On a phone it is a drawer. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { alertsQuery, queryClient, sessionQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import { Icon, type IconName } from "../components/icons.js";
import { useModal } from "../components/use-modal.js";
import { useOpenFeed } from "../live/use-live-feed.js";
import mark from "../styles/mark.svg";
import { chooseTheme, type Theme, useChosenTheme } from "../styles/theme.js";
import { useSearch } from "../time/use-search.js";
import { isMac, openHand } from "./open-hand.js";
import { useMay, useSession } from "./session.js";

interface Place {
  readonly to: string;
  readonly label: string;
  readonly icon: IconName;
}

export const groups: readonly { readonly name: string; readonly places: readonly Place[] }[] = [
  {
    name: "Traffic",
    places: [
      { to: "/", label: "Overview", icon: "overview" },
      { to: "/top-keys", label: "Top keys", icon: "top" },
      { to: "/keys", label: "Explain a key", icon: "keys" },
      { to: "/spend", label: "Spend", icon: "spend" },
      { to: "/load", label: "Load", icon: "load" },
      { to: "/alerts", label: "Alerts", icon: "alerts" },
    ],
  },
  {
    name: "Limits",
    places: [
      { to: "/rules", label: "Rules", icon: "rules" },
      { to: "/history", label: "History", icon: "history" },
    ],
  },
  {
    name: "Service",
    places: [
      { to: "/store", label: "Store", icon: "store" },
      { to: "/regions", label: "Regions", icon: "regions" },
      { to: "/audit", label: "Audit", icon: "audit" },
      { to: "/tokens", label: "Tokens", icon: "tokens" },
    ],
  },
];

function Rail() {
  const [location] = useLocation();
  // Re-renders on changes: the links carry the selected time.
  useSearch();
  const isAdmin = useMay("admin");
  const { data } = useQuery(alertsQuery);
  const firing = data?.alerts.filter(({ state }) => state === "firing").length ?? 0;
  return (
    <header className="rail">
      <Link href="/" className="brand">
        <img src={mark} alt="" />
        Sluice
      </Link>
      <button type="button" className="go-to" onClick={() => openHand("palette")}>
        Go to … <kbd>{isMac ? "⌘" : "Ctrl"} K</kbd>
      </button>
      <nav aria-label="Pages">
        {groups.map(({ name, places }) => (
          <div key={name}>
            <div className="group">{name}</div>
            <ul>
              {places
                .filter(({ to }) => to !== "/tokens" || isAdmin)
                .map(({ to, label, icon }) => {
                  const isBelow = to !== "/" && location.startsWith(`${to}/`);
                  const isHere = location === to || isBelow || (to === "/rules" && location === "/new-rule");
                  return (
                    <li key={to}>
                      <Link href={to} {...(isHere && { "aria-current": "page" as const })}>
                        <Icon name={icon} />
                        {label}
                        {to === "/alerts" && firing > 0 && (
                          <span className="count">
                            {firing}
                            <span className="unseen"> firing</span>
                          </span>
                        )}
                      </Link>
                    </li>
                  );
                })}
            </ul>
          </div>
        ))}
      </nav>
      <Account />
    </header>
  );
}

const nextTheme: Readonly<Record<Theme, Theme>> = { system: "light", light: "dark", dark: "system" };

function Account() {
  const session = useSession();
  const theme = useChosenTheme();
  const signOut = useMutation({
    mutationFn: () => request<void>("/session", { method: "DELETE" }),
    onSuccess: () => {
      queryClient.clear();
      queryClient.setQueryData(sessionQuery.queryKey, null);
    },
  });
  return (
    <div className="account">
      <div className="who">
        {session.name}
        <span>{session.role}</span>
      </div>
      <div className="row">
        <button type="button" onClick={() => chooseTheme(nextTheme[theme])}>
          <span className="unseen">Theme: </span>
          {theme === "system" ? "Auto" : theme === "light" ? "Light" : "Dark"}
        </button>
        <button type="button" onClick={() => signOut.mutate()} disabled={signOut.isPending}>
          Sign out
        </button>
      </div>
    </div>
  );
}

export function Navigation() {
  useOpenFeed();
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <Rail />
      <div className="topbar">
        <Link href="/" className="brand">
          <img src={mark} alt="" />
          Sluice
        </Link>
        <button type="button" aria-expanded={isOpen} onClick={() => setIsOpen(true)}>
          <Icon name="menu" />
          Menu
        </button>
      </div>
      {isOpen && <Drawer onClose={() => setIsOpen(false)} />}
    </>
  );
}

function Drawer({ onClose }: { onClose: () => void }) {
  const modal = useModal(onClose);
  const [location] = useLocation();
  const openedAt = useRef(location);
  useEffect(() => {
    if (location !== openedAt.current) onClose();
  }, [location, onClose]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard has Escape, which the browser's dialog knows.
    <dialog
      className="drawer"
      aria-label="Pages"
      {...modal.props}
      onClick={(event) => event.target === event.currentTarget && modal.close()}
    >
      <Rail />
    </dialog>
  );
}
