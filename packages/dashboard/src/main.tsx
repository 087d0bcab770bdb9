/** Starts the dashboard in the page. */
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./api/queries.js";
import { App } from "./app.js";
import "./look/tokens.css";
import "./look/base.css";
import "./look/shell.css";
import "./look/parts.css";
import "./look/pages.css";
import { startTheme } from "./look/theme.js";

startTheme();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
