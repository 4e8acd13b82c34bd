// Entry of the live dashboard: all pages.
import { page as overview } from "./overview.js";
import { page as playground } from "./playground.js";
import { page as run } from "./run.js";
import { page as several } from "./several.js";
import { start } from "./shell.js";

<<<<<<< HEAD
start({ overview, run, playground }, { tabs: ["overview", "playground"] });
=======
start({ overview, run, several }, { tabs: ["overview"] });
>>>>>>> dash
