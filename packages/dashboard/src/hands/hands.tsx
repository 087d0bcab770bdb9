/**
 * Keyboard shortcuts: Ctrl-K opens the command palette, `/` focuses the page's search, `?` lists the shortcuts. Disabled while a dialog is
 * open.
 */
import { useEffect, useSyncExternalStore } from "react";
import { Dialog } from "../components/dialog.js";
import { currentHand, isMac, openHand, subscribeHand } from "../shell/open-hand.js";
import { Palette } from "./palette.js";
import { shortcutOf } from "./shortcut.js";

export function Hands() {
  const shown = useSyncExternalStore(subscribeHand, currentHand);
  useEffect(() => {
    addEventListener("keydown", act);
    return () => {
      removeEventListener("keydown", act);
      openHand(undefined);
    };
  }, []);
  if (shown === "palette") return <Palette />;
  return shown === "keys" ? <KeyList /> : null;
}

function act(event: KeyboardEvent): void {
  const { target } = event;
  const isTyping =
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches("textarea, select, input:not([type=checkbox], [type=radio])"));
  const shortcut = shortcutOf(event, isTyping);
  if (shortcut === undefined || event.defaultPrevented) return;
  // Ctrl-K would otherwise trigger the browser's own shortcut, even in a dialog.
  event.preventDefault();
  if (document.querySelector("dialog[open]") !== null) return;
  const search = shortcut === "search" ? document.querySelector<HTMLInputElement>("main input[type=search]") : null;
  if (search === null) openHand(shortcut === "keys" ? "keys" : "palette");
  else {
    search.focus();
    search.select();
  }
}

const keys = [
  [isMac ? "⌘ K" : "Ctrl K", "Go to a page, a rule or a key"],
  ["/", "Search on this page; where it has no search, go to …"],
  ["?", "This list"],
  ["↑ ↓ Enter", "Choose and open what the palette found"],
  ["Esc", "Close a dialog; nothing is changed"],
] as const;

function KeyList() {
  return (
    <Dialog title="Keyboard shortcuts" cancel="Close" onClose={() => openHand(undefined)} footer={null}>
      <dl className="key-list">
        {keys.map(([key, what]) => (
          <div key={key} className="key-row">
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
