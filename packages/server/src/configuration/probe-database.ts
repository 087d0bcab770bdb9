/** Whether a database answers, for `sluice doctor`: the repository itself is not for commands. */
export { probeDatabase } from "./repository/open-repository.js";
