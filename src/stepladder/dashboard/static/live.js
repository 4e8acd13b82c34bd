// Entry of the live dashboard: all pages.
import { page as compare } from "./compare.js";
import { page as overview } from "./overview.js";
import { page as playground } from "./playground.js";
import { page as run } from "./run.js";
import { page as several } from "./several.js";
import { page as sweeps } from "./sweeps.js";
import { start } from "./shell.js";

start({ overview, run, several, compare, playground, sweeps }, { tabs: ["overview", "compare", "playground", "sweeps"] });
