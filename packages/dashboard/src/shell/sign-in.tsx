/** Signing in: the token is sent to the service once, in exchange for a cookie that scripts cannot read. Nothing of it is stored here. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { queryClient, sessionQuery } from "../api/queries.js";
import { request } from "../api/request.js";
import type { SessionView } from "../api/shapes.js";
import { Field } from "../components/controls.js";
import { Notice, ProblemNotice } from "../components/panel.js";
import mark from "../styles/mark.svg";

export function SignIn({ hasEnded }: { hasEnded: boolean }) {
  const [token, setToken] = useState("");
  const signIn = useMutation({
    mutationFn: () => request<SessionView>("/session", { method: "POST", body: { token: token.trim() } }),
    onSuccess: (session) => queryClient.setQueryData(sessionQuery.queryKey, session),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (token.trim() !== "") signIn.mutate();
  };
  return (
    <div className="sign-in">
      <div className="gate">
        <span className="brand">
          <img src={mark} alt="" />
          Sluice
        </span>
        <p>May this request pass now?</p>
        <Weir />
      </div>
      <main>
        <form onSubmit={submit}>
          <h1>Sign in</h1>
          {hasEnded && <Notice tone="warn">Your session has ended. Sign in again to go on.</Notice>}
          <Field
            label="Token"
            hint={
              <>
                The first one stands in <code>.sluice/admin-token</code> where the service was started.
              </>
            }
          >
            {(control) => (
              <input
                {...control}
                className="input mono"
                type="password"
                autoComplete="current-password"
                maxLength={1024}
                required
                value={token}
                onChange={(event) => setToken(event.target.value)}
              />
            )}
          </Field>
          {signIn.error !== null && <ProblemNotice error={signIn.error} title="Not signed in" />}
          <button type="submit" className="button main" disabled={signIn.isPending}>
            {signIn.isPending ? "Signing in …" : "Sign in"}
          </button>
          <SingleSignOn />
        </form>
      </main>
    </div>
  );
}

/** Why single sign-on returned without a session. */
const failures: Readonly<Record<string, string>> = {
  denied: "The provider or you said no.",
  expired: "The sign-in took too long, or began in another browser. Try again.",
  "no-role": "Your account has no role for this service. Ask an administrator for one.",
  failed: "The provider does not answer, or its answer is not valid. The service's log says more.",
};

function SingleSignOn() {
  const methods = useQuery({
    queryKey: ["sign-in-methods"],
    queryFn: () => request<{ sso: boolean }>("/session/methods"),
  });
  if (methods.data?.sso !== true) return null;
  const query = new URLSearchParams(location.search);
  const failure = failures[query.get("sso") ?? ""];
  query.delete("sso");
  const rest = query.toString();
  const to = `${location.pathname}${rest === "" ? "" : `?${rest}`}`;
  return (
    <>
      {failure !== undefined && <Notice tone="bad">{failure}</Notice>}
      <a className="button" href={`/admin/v1/session/sso?to=${encodeURIComponent(to)}`}>
        Single sign-on
      </a>
    </>
  );
}

/** The logo: arriving water, a weir, and what it lets through. */
function Weir() {
  const arriving = [0, 1, 2, 3, 4, 5, 6];
  return (
    <svg viewBox="0 0 400 150" fill="none" aria-hidden="true">
      {arriving.map((line) => (
        <path
          key={line}
          d={`M0 ${20 + line * 18}q12 -8 24 0t24 0t24 0t24 0t24 0t24 0t24 0t20 0`}
          stroke={line < 4 ? "#ff8c5e" : "#63c9c2"}
          strokeOpacity={line < 4 ? 0.35 + line * 0.08 : 0.95}
          strokeWidth="3"
          strokeLinecap="round"
        />
      ))}
      <rect x="198" y="0" width="12" height="84" rx="3" fill="#fff" />
      {[4, 5, 6].map((line) => (
        <path
          key={line}
          d={`M216 ${20 + line * 18}q12 -6 24 0t24 0t24 0t24 0t24 0t24 0t24 0`}
          stroke="#63c9c2"
          strokeWidth="3"
          strokeLinecap="round"
        />
      ))}
    </svg>
  );
}
