// Forms for the limits and the settings of a function.
import { send } from "./actions.js";
import { field, form, input, select } from "./dialog.js";
import { make } from "./dom.js";
import { count, NONE } from "./format.js";
import { notice } from "./notice.js";
import { shown } from "./text.js";

/** The form for the limits of a function, by priority of the submitted job. */
export function askForLimits(item) {
  const [high, normal, low] = item.limits;
  const number = (name, value) =>
    input(name, { type: "number", min: "0", step: "1", required: true, value: String(value) });
  const columns = make(
    "div",
    { class: "columns" },
    field("High", number("high", high)),
    field("Normal", number("normal", normal)),
    field("Low", number("low", low)),
  );
  const save = async (data) => {
    const limits = Object.fromEntries(["high", "normal", "low"].map((name) => [name, Number(data.get(name))]));
    await send("limit", item.name, limits);
    notice(`Limits of ${shown(item.name)} saved.`);
  };
  return form(`Limits of ${shown(item.name)}`, [columns], save, {
    note: "A job is refused if the function has this many jobs already, by priority of the job. 0: no limit.",
  });
}

/** By priority: high, normal, low. */
export function limitsText(limits) {
  if (limits.every((limit) => limit === 0)) return NONE;
  return limits.map((limit) => (limit ? count(limit) : "∞")).join(" / ");
}

const DEFAULT_SECONDS = -1; // the server's setting applies
const FAILURES = [
  ["default", "as the server's setting says"],
  ["keep", "are kept, and can be retried"],
  ["dead", "are dead jobs"],
  ["forget", "leave only a record"],
];

/** The form for the settings that a function has of its own. */
export function askForSettings(item) {
  const { failures, keep_for: keepFor, keep_failed_for: keepFailedFor, max_run: maxRun } = item.settings;
  const placeholder = "as the server's setting says";
  const seconds = (name, value, empty = placeholder) =>
    input(name, { type: "number", min: "0", step: "any", value: value ?? "", placeholder: empty });
  const fields = [
    field("Background jobs that fail", select("failures", FAILURES, failures ?? "default")),
    field("Keep records of done and cancelled jobs", seconds("keep_for", keepFor), "seconds"),
    field("Keep failed jobs", seconds("keep_failed_for", keepFailedFor), "seconds"),
    field("A worker may take", seconds("max_run", maxRun, "any time"), "seconds"),
  ];
  const save = async (data) => {
    const time = (name) => (data.get(name) === "" ? DEFAULT_SECONDS : Number(data.get(name)));
    await send("configure", item.name, {
      failures: data.get("failures"),
      keep_for: time("keep_for"),
      keep_failed_for: time("keep_failed_for"),
      max_run: time("max_run"),
    });
    notice(`Settings of ${shown(item.name)} saved.`);
  };
  return form(`Settings of ${shown(item.name)}`, fields, save);
}
