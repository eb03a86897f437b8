// The life of a job, attempt by attempt.
import { make } from "../lib/dom.js";
import { duration, timeOfDay } from "../lib/format.js";
import { shown } from "../lib/text.js";
import { time } from "../lib/time.js";

const ENDS = { done: "Done", failed: "Failed", cancelled: "Cancelled", dead: "Given up" };

export function timeline(job) {
  const steps = [step("queued", `Submitted by ${job.door}`, job.submitted_at)];
  job.trials.forEach((trial, index) => steps.push(attempt(index + 1, trial)));
  if (job.started_at !== null && job.started_at > (job.trials.at(-1)?.started_at ?? 0)) steps.push(lastAttempt(job));
  steps.push(...ending(job));
  return make("ol", { class: "timeline" }, ...steps);
}

function attempt(number, trial) {
  const who = whose(trial.worker, trial.door);
  const took = `lasted ${duration(trial.ended_at - trial.started_at)}`;
  return step("failed", `Attempt ${number}${who}`, trial.started_at, took, trial.why);
}

function lastAttempt(job) {
  const running = job.state === "running";
  const took = running
    ? make("span", {}, "for ", time(job.started_at, "age"))
    : job.finished_at === null
      ? ""
      : `lasted ${duration(job.finished_at - job.started_at)}`;
  return step(
    running ? "running" : job.state,
    `Attempt ${job.trials.length + 1}${whose(job.worker, job.worker_door)}`,
    job.started_at,
    took,
    "",
    running,
  );
}

function ending(job) {
  if (ENDS[job.state]) return [step(job.state, ENDS[job.state], job.finished_at, "", job.reason)];
  if (job.state === "scheduled") return [waits("Waits for its time", job.run_at, "until")];
  if (job.state === "queued") return [waits("Waits for a worker", null)];
  return [];
}

function whose(worker, door) {
  const name = shown(worker);
  if (!name && !door) return "";
  return ` by ${name || "a worker"}${door ? ` (${door})` : ""}`;
}

function waits(text, at, style) {
  const due = at ? time(at, style) : null;
  return make("li", { class: "now", "data-tone": "scheduled" }, make("div", { class: "moment" }, text, due));
}

function step(tone, text, at, took = "", why = "", now = false) {
  return make(
    "li",
    { class: now ? "now" : null, "data-tone": tone },
    make(
      "div",
      { class: "moment" },
      text,
      at ? make("span", { class: "soft" }, timeOfDay(at)) : null,
      took ? make("span", { class: "soft" }, took) : null,
    ),
    why ? make("div", { class: "why soft small" }, why) : null,
  );
}
