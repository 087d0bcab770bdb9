/** The frame and its pages. Without a session there is one page, signing in; the address stays, so that one comes back to where one was. */
import { useQuery } from "@tanstack/react-query";
import { Suspense, useEffect, useState, useSyncExternalStore } from "react";
import { Route, Switch } from "wouter";
import { queryClient, sessionQuery } from "./api/queries.js";
import { contact } from "./live/contact.js";
import { RulesPage } from "./pages/rules.js";
import { Empty, Page } from "./parts/panel.js";
import { Navigation } from "./shell/navigation.js";
import { SessionProvider } from "./shell/session.js";
import { SignIn } from "./shell/sign-in.js";
import { StaleBanner } from "./shell/stale-banner.js";

export function App() {
  const session = useQuery(sessionQuery);
  const { signOuts } = useSyncExternalStore(contact.subscribe, contact.current);
  const [wasSignedIn, setWasSignedIn] = useState(false);
  useEffect(() => {
    if (signOuts > 0) queryClient.setQueryData(sessionQuery.queryKey, null);
  }, [signOuts]);
  useEffect(() => {
    if (session.data) setWasSignedIn(true);
  }, [session.data]);

  if (session.data === undefined) {
    return (
      <main className="content">
        <Empty title={session.isPending ? "Asking the service …" : "The service does not answer."}>
          {session.isPending ? "" : "It is asked again every few seconds."}
        </Empty>
      </main>
    );
  }
  if (session.data === null) return <SignIn hasEnded={wasSignedIn && signOuts > 0} />;
  return (
    <SessionProvider value={session.data}>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <div className="frame">
        <Navigation />
        <div>
          <StaleBanner />
          <main className="content" id="content" tabIndex={-1}>
            <Suspense fallback={<Empty title="Opening …" />}>
              <Pages />
            </Suspense>
          </main>
        </div>
      </div>
    </SessionProvider>
  );
}

function Pages() {
  return (
    <Switch>
      <Route path="/">
        <RulesPage />
      </Route>
      <Route path="/rules">
        <RulesPage />
      </Route>
      <Route>
        <Page title="Not here">
          <Empty title="There is no page of this name." />
        </Page>
      </Route>
    </Switch>
  );
}
