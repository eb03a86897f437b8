// Verbs that operators apply to jobs, functions and schedules. Their labels, questions and paths come from the server.
import { may } from "./access.js";
import * as api from "./api.js";
import { confirm } from "./dialog.js";
import { make } from "./dom.js";
import { plural } from "./format.js";
import { action, notice } from "./notice.js";
import { link } from "./router.js";
import { encoded, shown } from "./text.js";
import { VERBS } from "./verbs.js";

/** The function of the jobs that stand for workflows. */
export const WORKFLOW = "geartrain.workflow";

const SEND = { POST: api.post, PUT: api.put, PATCH: api.patch, DELETE: api.remove };

/** Names of the verbs that apply to a job in this state. */
export function verbsFor(state) {
  return Object.keys(VERBS).filter((name) => VERBS[name].about === "job" && VERBS[name].states.includes(state));
}

/** Buttons for a job. `job()` returns the current job, `done` is called afterwards with the verb's name. */
export function jobButtons(state, job, done, style = "tiny") {
  return verbsFor(state).map((name) => verbButton(name, job, done, style));
}

/** A button for a verb. `item()` returns the current job, function or schedule. */
export function verbButton(name, item, done, style = "tiny") {
  const click = action(async () => {
    if (await perform(name, item())) done(name);
  });
  return plainButton(name, click, style, functionOf(item()));
}

/** A button with the label of a verb, and another handler of the click; hidden if it is not allowed for the function. */
export function plainButton(name, click, style = "tiny", functionName = undefined) {
  const { danger, label, needs } = VERBS[name];
  const hidden = !may(needs, functionName);
  const classes = danger ? `danger ${style}` : style;
  return make("button", { type: "button", "data-needs": needs, hidden, class: classes, on: { click } }, label);
}

/** The name of the function that a job, schedule or function is about. */
function functionOf(item) {
  return item ? shown(item.function ?? item.name) : undefined;
}

/** Asks the verb's question, if it has one, and sends the verb. Resolves with whether it was sent. */
export async function perform(name, item) {
  const verb = VERBS[name];
  const target = item.handle ?? item.name;
  const { question, detail } = questionOf(name, item);
  if (question) {
    const text = question.replace("{name}", shown(target));
    if (!(await confirm(text, { detail, yes: verb.label, danger: verb.danger }))) return false;
  }
  const answer = await send(name, target);
  const submitted = verb.about === "schedule" ? answer?.handle : undefined;
  notice(`${shown(target)} is ${verb.past}.`, {
    link: submitted ? { href: link(`jobs/${encoded(submitted)}`), text: "Show job" } : null,
  });
  return true;
}

/** What to ask before; the end of a whole workflow is not for a slip of the hand, as that of one job is. */
function questionOf(name, item) {
  if (name !== "cancel" || item.function !== WORKFLOW) return VERBS[name];
  return {
    question: `Cancel the workflow ${item.workflow || "{name}"}?`,
    detail: "All of its jobs that have not ended are cancelled. A cancelled workflow cannot be retried.",
  };
}

/** The verb's request for a job, function or schedule. */
export function send(name, target, body = undefined) {
  const { method, path } = VERBS[name];
  return SEND[method](path.replace(/\{\w+\}/, encoded(target)), body);
}

/**
 * Applies a verb to every job that matches a filter: a slice per request, until none is left or the person stops it.
 * `onProgress(done, refused)` is called after each slice.
 */
export async function performOnAll(name, filter, onProgress, signal) {
  let done = 0;
  let refused = 0;
  for (let more = true; more && !signal.aborted;) {
    const report = await api.post("jobs/bulk", { action: VERBS[name].action, filter });
    done += report.done;
    refused += report.refused;
    onProgress(done, refused);
    // After a slice that did nothing, the next one would be the same.
    more = report.more && report.done > 0;
  }
  return { done, refused };
}

const AT_ONCE = 6; // requests for single jobs, as many as a browser sends to one host

/** Applies a verb to jobs by their handles. What a job refuses, because it changed state, is counted. */
export async function performOnEach(name, handles, onProgress, signal) {
  const waiting = [...handles];
  const sum = { done: 0, refused: 0 };
  const sender = async () => {
    while (waiting.length && !signal.aborted) {
      try {
        await send(name, waiting.shift());
        sum.done += 1;
      } catch (error) {
        if (error.status !== 404 && error.status !== 409) throw error;
        sum.refused += 1;
      }
      onProgress(sum.done, sum.refused);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sender));
  return sum;
}

export function sumUp(name, { done, refused }) {
  const rest = refused ? `; ${plural(refused, "job")} had changed state` : "";
  return `${plural(done, "job")} ${done === 1 ? "is" : "are"} ${VERBS[name].past}${rest}.`;
}

/** The verb that pauses or resumes a function, whichever applies. */
export function pauseVerb(item) {
  return item.paused ? "resume" : "pause";
}
