// The table of jobs, and the columns that pages choose from.
import { jobButtons } from "../lib/actions.js";
import { make, setAttribute, setText } from "../lib/dom.js";
import { argumentsPreview } from "../lib/envelope.js";
import { count, duration } from "../lib/format.js";
import { summary } from "../lib/reason.js";
import { badge, functionLink, jobLink } from "../lib/widgets.js";
import { numberColumn, Table } from "../lib/table.js";
import { shown } from "../lib/text.js";
import { setTime } from "../lib/time.js";
import { workflowColumns } from "./workflowcolumns.js";

const PREVIEW = 80;

export function jobTable(label, columns, selection = null) {
  return new Table({ label, columns, key: (job) => shown(job.handle), selection });
}

/** Columns by name, in this order; `changed` is called after an action on a job. */
export function jobColumns(names, changed) {
  const all = {
    handle: { label: "Job", class: "title", value: (job) => shown(job.handle), fill: fillHandle },
    state: { label: "State", value: stateOf, fill: fillState },
    function: {
      label: "Function",
      class: "short",
      value: (job) => shown(job.function),
      fill: fillFunction,
    },
    payload: { label: "Payload", class: "mono fill", value: preview, fill: fillPayload },
    doors: {
      label: "Protocols",
      class: "roomy",
      value: (job) => (job.worker_door ? `${job.door} → ${job.worker_door}` : job.door),
    },
    server: { label: "Server", class: "cluster-only", value: (job) => job.server || "–" },
    submitted: {
      label: "Submitted",
      value: (job) => job.submitted_at,
      fill: (cell, job) => fillTime(cell, job.submitted_at),
    },
    ended: {
      label: "Ended",
      value: (job) => job.finished_at ?? job.submitted_at,
      fill: (cell, job) => fillTime(cell, job.finished_at ?? job.submitted_at),
    },
    took: { label: "Took", class: "number", value: tookText },
    attempts: numberColumn("Attempts", (job) => job.attempts, count, { class: "number roomy" }),
    reason: { label: "Reason", class: "wrap", value: (job) => job.reason, fill: fillReason },
    actions: {
      label: "",
      class: "actions",
      value: (job) => job.state,
      fill: (cell, job) => fillActions(cell, job, changed),
    },
    ...workflowColumns,
  };
  return names.map((name) => all[name]);
}

function fillHandle(cell, job) {
  const priority =
    job.priority === "normal" ? [] : [" ", make("span", { class: "chip", title: "Priority" }, job.priority)];
  cell.replaceChildren(jobLink(job.handle), ...priority);
}

function fillFunction(cell, job) {
  cell.replaceChildren(functionLink(job.function));
  setAttribute(cell, "title", shown(job.function));
}

function stateOf(job) {
  const percent =
    job.state === "running" && job.denominator ? ` ${Math.round((job.numerator / job.denominator) * 100)}%` : "";
  return job.state + percent;
}

function fillState(cell, job) {
  cell.replaceChildren(badge(stateOf(job), job.state));
  setAttribute(cell, "title", job.reason || null);
}

function fillReason(cell, job) {
  cell.replaceChildren(make("div", {}, summary(job.reason) || "unknown"));
  setAttribute(cell, "title", job.reason);
}

function preview(job) {
  if (job.payload === null) return "not kept";
  const text = (argumentsPreview(job.payload) ?? shown(job.payload)).replaceAll("\n", "⏎");
  return text.length > PREVIEW ? `${text.slice(0, PREVIEW)}…` : text;
}

function fillPayload(cell, job) {
  setText(cell, preview(job));
  cell.classList.toggle("zero", job.payload === null);
  setAttribute(cell, "title", preview(job));
}

function tookText(job) {
  const over = job.started_at !== null && job.finished_at !== null;
  return over ? duration(job.finished_at - job.started_at) : "";
}

function fillTime(cell, at) {
  if (!cell.firstChild) cell.append(make("time"));
  setTime(cell.firstChild, at);
}

function fillActions(cell, job, changed) {
  cell.replaceChildren(make("div", { class: "row" }, ...jobButtons(job.state, cell.current, changed)));
}
