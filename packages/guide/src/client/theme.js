/** Before the first paint: the theme that this browser chose, here or in the console. */
try {
  const kept = localStorage.getItem("sluice-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch {
  // Storage may be forbidden: the system's theme then.
}
