// The timeline of a job: submission, attempts, end.
import { make } from "../lib/dom.js";
import { duration, timeOfDay } from "../lib/format.js";
import { hasTraceback, summary, tracebackText } from "../lib/reason.js";
import { shown } from "../lib/text.js";
import { time } from "../lib/time.js";

const ENDS = { done: "Done", failed: "Failed", cancelled: "Cancelled", dead: "Dead", expired: "Expired" };

export function timeline(job) {
  const steps = [step("queued", `Submitted over ${job.door}`, job.submitted_at)];
  job.trials.forEach((trial, index) => steps.push(attempt(index + 1, trial)));
  if (job.started_at !== null && job.started_at > (job.trials.at(-1)?.started_at ?? 0)) steps.push(lastAttempt(job));
  steps.push(...ending(job));
  return make("ol", { class: "timeline" }, ...steps);
}

function attempt(number, trial) {
  const worker = byWorker(trial.worker, trial.door);
  const took = `took ${duration(trial.ended_at - trial.started_at)}`;
  const attempt = step("failed", `Attempt ${number}${worker}`, trial.started_at, took, trial.why);
  // The traceback of the last attempt is on the page already.
  if (hasTraceback(trial.why))
    attempt.append(make("details", {}, make("summary", {}, "Traceback"), tracebackText(trial.why)));
  return attempt;
}

function lastAttempt(job) {
  const running = job.state === "running";
  const took = running
    ? make("span", {}, "for ", time(job.started_at, "age"))
    : job.finished_at === null
      ? ""
      : `took ${duration(job.finished_at - job.started_at)}`;
  return step(
    running ? "running" : job.state,
    `Attempt ${job.trials.length + 1}${byWorker(job.worker, job.worker_door)}`,
    job.started_at,
    took,
    "",
    running,
  );
}

function ending(job) {
  if (ENDS[job.state]) return [step(job.state, ENDS[job.state], job.finished_at, "", job.reason)];
  if (job.state === "scheduled") return [waiting("scheduled", "Scheduled", job.run_at)];
  if (job.state === "blocked") return [waiting("blocked", `Blocked: it waits for ${job.waits_for}`, null)];
  if (job.state === "queued") return [waiting("queued", "Queued: no worker has taken it yet", null)];
  return [];
}

function byWorker(worker, door) {
  const name = shown(worker);
  if (!name && !door) return "";
  return ` by ${name || "a worker"}${door ? ` (${door})` : ""}`;
}

function waiting(tone, text, at) {
  const due = at ? time(at, "until") : null;
  return make("li", { class: "current", "data-tone": tone }, make("div", { class: "step" }, text, due));
}

function step(tone, text, at, took = "", reason = "", current = false) {
  return make(
    "li",
    { class: current ? "current" : null, "data-tone": tone },
    make(
      "div",
      { class: "step" },
      text,
      at ? make("span", { class: "soft" }, timeOfDay(at)) : null,
      took ? make("span", { class: "soft" }, took) : null,
    ),
    reason ? make("div", { class: "reason soft small" }, summary(reason)) : null,
  );
}
