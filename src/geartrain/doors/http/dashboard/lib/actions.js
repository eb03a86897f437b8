// What can be done to jobs and functions, each with its question and its answer.
import * as api from "./api.js";
import { confirm, field, form, input } from "./dialog.js";
import { make } from "./dom.js";
import { count, NONE, plural } from "./format.js";
import { action, notice } from "./notice.js";
import { encoded, shown } from "./text.js";

/** Deeds by name: in which states of a job, how it is asked for, and what is said afterwards. */
export const DEEDS = {
  retry: { text: "Retry", states: ["dead"], said: "is queued again", many: "Retry all" },
  run: { text: "Run now", states: ["scheduled"], said: "is queued now", many: "Run all now" },
  cancel: {
    text: "Cancel",
    states: ["scheduled", "queued", "running"],
    said: "is cancelled",
    many: "Cancel all",
    danger: true,
  },
  delete: { text: "Delete", states: ["dead"], said: "is deleted", many: "Delete all", danger: true },
};

export function deedsFor(state) {
  return Object.keys(DEEDS).filter((name) => DEEDS[name].states.includes(state));
}

/** Buttons for a job. `job()` gives the present one, `done` is called afterwards. */
export function jobButtons(state, job, done, style = "tiny") {
  return deedsFor(state).map((name) => {
    const deed = DEEDS[name];
    const click = action(async () => {
      if (
        name === "delete" &&
        !(await confirm(`Delete ${shown(job().handle)}?`, {
          detail: "The job, its payload and its reason are gone for good.",
          yes: "Delete",
          danger: true,
        }))
      )
        return;
      await perform(name, job().handle);
      notice(`${shown(job().handle)} ${deed.said}.`);
      done(name);
    });
    return make(
      "button",
      { type: "button", "data-needs": "admin", class: deed.danger ? `danger ${style}` : style, on: { click } },
      deed.text,
    );
  });
}

function perform(name, handle) {
  const path = `jobs/${encoded(handle)}`;
  return name === "delete" ? api.remove(path) : api.post(`${path}/${name}`);
}

/**
 * A deed on every job that fits a filter: asked for in slices until none is left, or the person stops it.
 * `onProgress(done, refused)` hears after each slice.
 */
export async function performOnAll(name, filter, onProgress, signal) {
  let done = 0;
  let refused = 0;
  for (let more = true; more && !signal.aborted;) {
    const report = await api.post("jobs/bulk", { action: name, filter });
    done += report.done;
    refused += report.refused;
    onProgress(done, refused);
    // A slice that did nothing would be followed by the same slice again.
    more = report.more && report.done > 0;
  }
  return { done, refused };
}

export function sumUp(name, { done, refused }) {
  const rest = refused ? `; ${plural(refused, "job")} had moved on` : "";
  return `${plural(done, "job")} ${done === 1 ? DEEDS[name].said : DEEDS[name].said.replace("is ", "are ")}${rest}.`;
}

/** Pause or resume, whichever applies. */
export async function togglePause(item) {
  const verb = item.paused ? "resume" : "pause";
  await api.post(`functions/${encoded(item.name)}/${verb}`);
  notice(`${shown(item.name)} is ${verb}d.`);
}

/** How many jobs a function may have, by the priority of the one that wants in. */
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
  const send = async (data) => {
    const limits = Object.fromEntries(["high", "normal", "low"].map((name) => [name, Number(data.get(name))]));
    await api.put(`functions/${encoded(item.name)}/limits`, limits);
    notice(`The limits of ${shown(item.name)} are set.`);
  };
  return form(`Limits of ${shown(item.name)}`, [columns], send, {
    note: "How many jobs it may have when one of that priority wants in; one more is refused. 0 means no limit.",
  });
}

/** By priority: high, normal, low. */
export function limitsText(limits) {
  if (limits.every((limit) => limit === 0)) return NONE;
  return limits.map((limit) => (limit ? count(limit) : "∞")).join(" / ");
}

/** Forget a function that has neither jobs nor workers. */
export async function drop(item) {
  const sure = await confirm(`Drop ${shown(item.name)}?`, {
    detail: "The function is forgotten. This works only while it has no jobs and no workers.",
    yes: "Drop",
    danger: true,
  });
  if (!sure) return false;
  await api.remove(`functions/${encoded(item.name)}`);
  notice(`${shown(item.name)} is dropped.`);
  return true;
}
