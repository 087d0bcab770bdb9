/** A banner with the age of the figures while the service is unreachable. Disappears when it is back. */
import { useEffect, useState, useSyncExternalStore } from "react";
import { contact } from "../api/contact.js";
import { clockTime, span } from "../components/format.js";

export function StaleBanner() {
  const { isUp, lastHeardAtMs } = useSyncExternalStore(contact.subscribe, contact.current);
  const [nowMs, setNowMs] = useState(Date.now);
  useEffect(() => {
    if (isUp) return;
    setNowMs(Date.now());
    const timer = setInterval(() => setNowMs(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isUp]);
  return (
    <div role="status">
      {!isUp && (
        <div className="stale">
          <span>
            The service does not answer. These figures are from {clockTime(lastHeardAtMs)},{" "}
            {span(nowMs - lastHeardAtMs)} ago.
          </span>
          <span>Trying again …</span>
        </div>
      )}
    </div>
  );
}
