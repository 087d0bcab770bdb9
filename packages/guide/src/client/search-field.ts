/**
 * The search field: a combobox over a list of links (WAI-ARIA 1.2). `/` or Ctrl-K goes to it, arrows choose, Enter opens, Escape closes.
 * Text becomes DOM by textContent alone: the service's policy allows no HTML from strings.
 */
import { type Found, loadSearch } from "./search-texts.js";

interface Parts {
  readonly form: HTMLFormElement;
  readonly input: HTMLInputElement;
  readonly list: HTMLElement;
  readonly status: HTMLElement;
}

export function startSearch(parts: Parts, { root, texts }: { root: string; texts: string }): void {
  const { form, input, list, status } = parts;
  let search: ReturnType<typeof loadSearch> | undefined;
  let chosen = -1;

  const options = (): HTMLElement[] => [...list.querySelectorAll<HTMLElement>("[role=option]")];
  const choose = (at: number): void => {
    const all = options();
    chosen = all.length === 0 ? -1 : (at + all.length) % all.length;
    for (const [place, option] of all.entries()) option.setAttribute("aria-selected", String(place === chosen));
    if (chosen === -1) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", `found-${chosen}`);
    all[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const close = (): void => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    chosen = -1;
  };
  const show = (found: readonly Found[]): void => {
    list.replaceChildren(...found.map((one, at) => optionOf(one, { at, root })));
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(found.length > 0));
    status.textContent = found.length === 0 ? "Nothing found" : `${found.length} found`;
    status.classList.toggle("visually-hidden", found.length > 0);
    choose(0);
  };
  const update = async (): Promise<void> => {
    const query = input.value.trim();
    if (query === "") {
      status.textContent = "";
      close();
      return;
    }
    try {
      search ??= loadSearch(texts);
      const find = await search;
      if (query === input.value.trim()) show(find(query));
    } catch {
      search = undefined;
      status.textContent = "The search could not be loaded";
      status.classList.remove("visually-hidden");
    }
  };

  input.addEventListener("input", () => void update());
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    options()[chosen]?.click();
  });
  form.addEventListener("focusout", ({ relatedTarget }) => {
    if (!form.contains(relatedTarget as Node | null)) close();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement;
    if (!(event.key === "k" && (event.ctrlKey || event.metaKey)) && (event.key !== "/" || isTyping)) return;
    event.preventDefault();
    input.focus();
  });
  form.hidden = false;
}

function optionOf({ url, page, heading, excerpt }: Found, { at, root }: { at: number; root: string }): HTMLElement {
  const link = document.createElement("a");
  link.href = root + url;
  link.tabIndex = -1;
  for (const [name, text] of [
    ["strong", heading],
    ["small", page === heading ? "" : page],
    ["span", excerpt],
  ] as const) {
    const part = document.createElement(name);
    part.textContent = text;
    link.append(part);
  }
  // The link is the option itself: one inside of it would be a control within a control.
  link.role = "option";
  link.id = `found-${at}`;
  // The field keeps the focus, so that the list stays until the link is followed.
  link.addEventListener("mousedown", (event) => event.preventDefault());
  return link;
}
