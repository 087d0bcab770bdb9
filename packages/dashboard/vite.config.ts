/** One page, hashed assets, nothing inline: the service's content security policy allows neither inline scripts nor data URLs. */
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
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
