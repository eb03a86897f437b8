// What lists show of the jobs that stand for workflows.
import { make, setText } from "../lib/dom.js";
import { count, duration } from "../lib/format.js";
import { link } from "../lib/router.js";
import { percent, StateBar } from "../lib/states.js";
import { numberColumn } from "../lib/table.js";
import { encoded, shown } from "../lib/text.js";
import { time } from "../lib/time.js";
import { badge } from "../lib/widgets.js";

export function isWorkflow(job) {
  return typeof job.workflow === "string";
}

export function workflowAddress(handle) {
  return link(`workflows/${encoded(handle)}`);
}

export function workflowLink(job) {
  return make("a", { href: workflowAddress(job.handle) }, job.workflow || shown(job.handle));
}

/** A workflow waits for its jobs: as a job it is blocked, for people it is running. */
export function workflowState(job) {
  return job.state === "blocked" ? "running" : job.state;
}

/** Columns of a table of jobs, by name. */
export const workflowColumns = {
  workflow: {
    label: "Workflow",
    class: "title grow",
    value: (job) => job.workflow || shown(job.handle),
    fill: (cell, job) => cell.replaceChildren(workflowLink(job)),
    title: true,
  },
  workflowHandle: { label: "Handle", class: "mono soft roomy", value: (job) => shown(job.handle) },
  workflowState: {
    label: "State",
    value: workflowState,
    fill: (cell, job) => cell.replaceChildren(badge(workflowState(job))),
  },
  members: numberColumn("Jobs", (job) => job.denominator),
  workflowProgress: { label: "Progress", value: progressOf, fill: fillProgress },
  workflowTook: {
    label: "Took",
    class: "number",
    value: (job) => `${job.submitted_at} ${job.finished_at}`,
    fill: fillTook,
  },
};

function progressOf(job) {
  return job.denominator ? `${job.state} ${job.numerator}/${job.denominator}` : "";
}

function fillProgress(cell, job) {
  if (!job.denominator) {
    setText(cell, "");
    return;
  }
  const { numerator, denominator } = job;
  const bar = new StateBar();
  bar.show({ [workflowState(job)]: numerator }, denominator - numerator);
  const text = make("span", { class: "number", title: `${count(numerator)} of ${count(denominator)} jobs have ended` });
  setText(text, `${percent(numerator, denominator)}%`);
  cell.replaceChildren(make("div", { class: "bar-and-text" }, bar.element, text));
}

function fillTook(cell, job) {
  const over = job.finished_at !== null;
  cell.replaceChildren(over ? duration(job.finished_at - job.submitted_at) : time(job.submitted_at, "age"));
}
