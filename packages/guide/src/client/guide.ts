/** What the pages do beyond being read: search, theme, copying code. Without it they still can be read. */
import { startSearch } from "./search-field.js";
import { startThemeButton } from "./theme-button.js";

function part<E extends HTMLElement>(selector: string): E {
  const found = document.querySelector<E>(selector);
  if (found === null) throw new Error(`expected ${selector} in the page`);
  return found;
}

function addCopyButton(code: HTMLElement): void {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent ?? "");
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2_000);
  });
  const holder = document.createElement("div");
  holder.className = "code";
  code.replaceWith(holder);
  holder.append(code, button);
}

const { root = "./", search = "" } = document.body.dataset;
startThemeButton(part("button.theme"));
startSearch(
  {
    form: part("form.search"),
    input: part("#search"),
    list: part("#found"),
    status: part("form.search [role=status]"),
  },
  { root, texts: search },
);
// Only where the page is loaded from this machine or over TLS: elsewhere browsers have no clipboard.
if (window.isSecureContext) for (const code of document.querySelectorAll("pre")) addCopyButton(code);
