/** The button that goes from light to dark and back. The choice is kept in this browser, as the console keeps it. */
const KEY = "sluice-theme";

function inForce(): "light" | "dark" {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function startThemeButton(button: HTMLButtonElement): void {
  const show = (): void => {
    button.textContent = inForce() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use the ${inForce() === "dark" ? "light" : "dark"} theme`);
  };
  button.addEventListener("click", () => {
    const next = inForce() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // Storage may be forbidden; the choice then lasts as long as the page.
    }
    show();
  });
  show();
  button.hidden = false;
}
