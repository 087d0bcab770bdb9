/** One page, hashed assets, nothing inline: the service's content security policy allows neither inline scripts nor data URLs. */
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const language = "new Intl.NumberFormat(domEnv ? nav.language : 'en-US')";

/**
 * uPlot makes a number format of the browser's language when it is loaded. Some browsers name a language that is none ("en-US@posix", under
 * LANG=C): it throws, and the console stays blank. The console formats every number itself, so the language does not matter.
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
    // Browsers that know light-dark(); a lowered form would not follow the theme switch.
    target: ["chrome125", "firefox125", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    // The service hands out no .md: the file is for readers of the package.
    license: { fileName: "THIRD-PARTY-NOTICES.md" },
    reportCompressedSize: false,
  },
});
