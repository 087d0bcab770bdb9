/** A single page, hashed assets, nothing inline: the service's CSP allows neither inline scripts nor data URLs. */
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const language = "new Intl.NumberFormat(domEnv ? nav.language : 'en-US')";

/**
 * uPlot creates a number format for the browser's language on load. Some browsers report an invalid language ("en-US@posix", under LANG=C):
 * it then throws, and the console stays blank. The console formats all numbers itself, so the language does not matter.
 */
function uplotInEnglish(): Plugin {
  return {
    name: "uplot-in-english",
    transform(code, id) {
      if (!/[\\/]uPlot\.esm\.js$/.test(id)) return;
      if (!code.includes(language))
        this.error(`uPlot no longer contains ${language}: look for where it reads the language now`);
      return { code: code.replace(language, 'new Intl.NumberFormat("en-US")'), map: null };
    },
  };
}

export default defineConfig({
  plugins: [react(), uplotInEnglish()],
  build: {
    // Browsers with light-dark(); a transpiled form would not follow the theme switch.
    target: ["chrome125", "firefox125", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    // The service does not serve .md files: this one is for readers of the package.
    license: { fileName: "THIRD-PARTY-NOTICES.md" },
    reportCompressedSize: false,
  },
});
