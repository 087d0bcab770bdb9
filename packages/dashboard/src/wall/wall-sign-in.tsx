/**
 * Signs a wall screen in with the token in its link, and again when the session has expired after 12 hours. Only viewer tokens: links are
 * easily copied. A refused token is not retried, so that a forgotten screen does not use up its address's attempts.
 */
import { useEffect, useState } from "react";
import { queryClient, sessionQuery } from "../api/queries.js";
import { Problem, request } from "../api/request.js";
import type { SessionView } from "../api/shapes.js";
import { Empty, Notice } from "../components/panel.js";

const AGAIN_MS = 5_000;

export function WallSignIn({ token }: { token: string }) {
  const [refusal, setRefusal] = useState<string>();
  const [attempt, setAttempt] = useState(1);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    void openViewer(token).catch((error: unknown) => {
      const isFinal = error instanceof Problem && (error.status === 401 || error.status === 403);
      if (isFinal) setRefusal(error.message);
      else timer = setTimeout(() => setAttempt(attempt + 1), AGAIN_MS);
    });
    return () => clearTimeout(timer);
  }, [token, attempt]);
  return (
    <main className="content">
      {refusal === undefined ? (
        <Empty title="Signing the screen in …">
          {attempt === 1 ? "" : "The service does not answer. The page tries again every few seconds."}
        </Empty>
      ) : (
        <Notice tone="bad" title="This link shows nothing.">
          {refusal}. Make a viewer's token on the page Tokens, and open the link that is shown with it.
        </Notice>
      )}
    </main>
  );
}

async function openViewer(token: string): Promise<void> {
  const session = await request<SessionView>("/session", { method: "POST", body: { token } });
  if (session.role === "viewer") {
    queryClient.setQueryData(sessionQuery.queryKey, session);
    return;
  }
  await request("/session", { method: "DELETE" });
  throw new Problem(403, { detail: `its token has the role ${session.role}, and links are for viewers` });
}
