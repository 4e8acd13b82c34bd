// The status of a run as a coloured word.
import { h } from "./dom.js";

export const statusMark = (run) => h("span", { class: `status ${run.status}`, title: run.detail || run.status }, run.status);
