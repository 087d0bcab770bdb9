/** The frame and its pages. Without a session there is only the sign-in page; the URL is kept, so that signing in leads back to it. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState, useSyncExternalStore } from "react";
import { Link, Route, Router, Switch, useLocation } from "wouter";
import { contact } from "./api/contact.js";
import { queryClient, sessionQuery } from "./api/queries.js";
import { AlertsPage } from "./pages/alerts.js";
import { AuditPage } from "./pages/audit.js";
import { HistoryPage } from "./pages/history.js";
import { KeysPage } from "./pages/keys.js";
import { OverviewPage } from "./pages/overview.js";
import { RulesPage } from "./pages/rules.js";
import { StorePage } from "./pages/store.js";
import { TokensPage } from "./pages/tokens.js";
import { TopKeysPage } from "./pages/top-keys.js";
import { useSearch } from "./time/use-search.js";

/** Code-split, because it includes the YAML parser. */
const rulePage = () => import("./rule-editor/rule-page.js");
const RulePage = lazy(async () => ({ default: (await rulePage()).RulePage }));
/** Code-split: rarely visited pages. */
const LoadPage = lazy(async () => ({ default: (await import("./load/load-page.js")).LoadPage }));
const SpendPage = lazy(async () => ({ default: (await import("./spend/spend-page.js")).SpendPage }));
const RegionsPage = lazy(async () => ({ default: (await import("./regions/regions-page.js")).RegionsPage }));
const AlertSettingsPage = lazy(async () => ({
  default: (await import("./alerts/alert-settings.js")).AlertSettingsPage,
}));
const WallPage = lazy(async () => ({ default: (await import("./wall/wall-page.js")).WallPage }));
const NewRulePage = lazy(async () => ({ default: (await rulePage()).NewRulePage }));

import { visible } from "./components/format.js";
import { Empty, Page } from "./components/panel.js";
import { Toasts } from "./components/toast.js";
import { Hands } from "./hands/hands.js";
import { applyZone } from "./range/zone.js";
import { linkAddress, navigation } from "./shell/navigate.js";
import { Navigation } from "./shell/navigation.js";
import { openHand } from "./shell/open-hand.js";
import { OutageBanner } from "./shell/outage.js";
import { PageFailure } from "./shell/page-failure.js";
import { SessionProvider } from "./shell/session.js";
import { SignIn } from "./shell/sign-in.js";
import { StaleBanner } from "./shell/stale-banner.js";
import { WALL, wallToken } from "./shell/wall-token.js";
import { WallSignIn } from "./wall/wall-sign-in.js";

export function App() {
  const session = useQuery(sessionQuery);
  const { signOuts } = useSyncExternalStore(contact.subscribe, contact.current);
  // Sessions that ended before this one started are not mentioned.
  const [endedBefore, setEndedBefore] = useState(signOuts);
  useEffect(() => {
    if (signOuts > 0) queryClient.setQueryData(sessionQuery.queryKey, null);
  }, [signOuts]);
  useEffect(() => {
    if (session.data) setEndedBefore(contact.current().signOuts);
  }, [session.data]);

  if (session.data === undefined) {
    return (
      <main className="content">
        <Empty title={session.isPending ? "Asking the service …" : "The service does not answer."}>
          {session.isPending ? "" : "The page tries again every few seconds."}
        </Empty>
      </main>
    );
  }
  if (session.data === null) {
    const token = wallToken(location);
    return token === undefined ? <SignIn hasEnded={signOuts > endedBefore} /> : <WallSignIn token={token} />;
  }
  return (
    <Router aroundNav={navigation} hrefs={linkAddress}>
      <SessionProvider value={session.data}>
        <Switch>
          <Route path={WALL}>
            <Wall />
          </Route>
          <Route>
            <Frame />
          </Route>
        </Switch>
      </SessionProvider>
    </Router>
  );
}

/** The wall screen, without interaction: banners and figures, no navigation rail. */
function Wall() {
  return (
    <div>
      <StaleBanner />
      <OutageBanner />
      <main className="content" id="content" tabIndex={-1}>
        <Suspense fallback={<Empty title="Opening …" />}>
          <WallPage key={applyZone(useSearch())} />
        </Suspense>
      </main>
    </div>
  );
}

function Frame() {
  return (
    <>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <div className="frame">
        <Navigation />
        <div>
          <StaleBanner />
          <OutageBanner />
          <main className="content" id="content" tabIndex={-1}>
            <Suspense fallback={<Empty title="Opening …" />}>
              <ZonedPages />
            </Suspense>
          </main>
        </div>
      </div>
      <Toasts />
      <Hands />
    </>
  );
}

/** Times are formatted during rendering: a change of zone re-renders everything. */
function ZonedPages() {
  const search = useSearch();
  const [path] = useLocation();
  return (
    <PageFailure address={path + search}>
      <Pages key={applyZone(search)} />
    </PageFailure>
  );
}

function Pages() {
  return (
    <Switch>
      <Route path="/" component={OverviewPage} />
      <Route path="/rules" component={RulesPage} />
      {/* Not below /rules, because a rule may be named "new". */}
      <Route path="/new-rule" component={NewRulePage} />
      <Route path="/rules/:id">{({ id }) => <RulePage id={id} />}</Route>
      <Route path="/history" component={HistoryPage} />
      <Route path="/keys" component={KeysPage} />
      <Route path="/top-keys" component={TopKeysPage} />
      <Route path="/spend" component={SpendPage} />
      <Route path="/load" component={LoadPage} />
      <Route path="/alerts" component={AlertsPage} />
      <Route path="/alerts/settings" component={AlertSettingsPage} />
      <Route path="/store" component={StorePage} />
      <Route path="/regions" component={RegionsPage} />
      <Route path="/audit" component={AuditPage} />
      <Route path="/tokens" component={TokensPage} />
      <Route>
        <Page title="Not here">
          <Empty title="There is no page of this name.">
            Nothing is at <code>{visible(location.pathname)}</code>. <Link href="/">Open the overview</Link>, or go to a
            page, a rule or a key:{" "}
            <button type="button" className="button small" onClick={() => openHand("palette")}>
              Go to …
            </button>
          </Empty>
        </Page>
      </Route>
    </Switch>
  );
}
