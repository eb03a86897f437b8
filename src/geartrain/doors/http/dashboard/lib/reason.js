// Reasons of failures: one line of them for lists, and tracebacks with their frames apart from the error.
import { copyText } from "./bytes.js";
import { make } from "./dom.js";

const TRACEBACK = "Traceback (most recent call last)";

/** The line that says most: the last one of a Python traceback, otherwise the first. As `failure_reasons.py` does. */
export function summary(reason) {
  const lines = reason.trim().split("\n");
  return (reason.trimStart().startsWith(TRACEBACK) ? lines.at(-1) : lines[0]).trim();
}

/** Whether there is more to a reason than its summary. */
export function hasTraceback(text) {
  return text.includes(TRACEBACK) || text.trim().includes("\n");
}

/** A traceback as text whose lines are marked: where, the code there, and the error. */
export function tracebackText(text) {
  const lines = text.trimEnd().split("\n");
  const parts = lines.map((line) => make("span", { class: kindOf(line) }, `${line}\n`));
  return make("pre", { class: "traceback", tabindex: "0", "aria-label": "Traceback" }, ...parts);
}

function kindOf(line) {
  if (/^\s+(File |at |from )/.test(line)) return "trace-place";
  if (/^\s/.test(line)) return "trace-code";
  return line.startsWith(TRACEBACK) || line.trim() === "" ? "trace-code" : "trace-error";
}

/** A card with a traceback. */
export function tracebackCard(text) {
  const click = () => copyText(text);
  const copy = make("button", { type: "button", class: "quiet tiny push", on: { click } }, "Copy");
  const head = make("div", { class: "card-head" }, make("h2", {}, "Traceback"), copy);
  return make("section", { class: "card bytes", "aria-label": "Traceback" }, head, tracebackText(text));
}
