// Entry of a report: the pages of its runs, from the answers that are written into it.
import { page as overview } from "./overview.js";
import { page as run } from "./run.js";
import { page as several } from "./several.js";
import { adopt } from "./settings.js";
import { frozen } from "./source.js";
import { start } from "./shell.js";

adopt(frozen.view);
// A single run has no overview: its own page comes first.
const only = frozen.runs.length === 1 ? frozen.runs[0] : null;
if (only === null) start({ several, overview, run }, { tabs: ["several", "overview"] });
else start({ run: { title: only, show: (main) => run.show(main, { run: only }) } });
