// One job: details, timeline, log, payload, traceback and result.
import { may } from "../lib/access.js";
import { download, get } from "../lib/api.js";
import { decode } from "../lib/bytes.js";
import { jobButtons } from "../lib/actions.js";
import { make } from "../lib/dom.js";
import { duration, dateTime, plural, size } from "../lib/format.js";
import { hasTraceback, summary, tracebackCard } from "../lib/reason.js";
import { action } from "../lib/notice.js";
import { autoRefresh } from "../lib/refresh.js";
import { link } from "../lib/router.js";
import { badge, facts, functionLink, problemBox } from "../lib/widgets.js";
import { askForJob } from "../lib/submit.js";
import { decoded, encoded, shown, textOfBytes } from "../lib/text.js";
import { time } from "../lib/time.js";
import { BytesPanel, isPart } from "./bytespanel.js";
import { Follower } from "./follow.js";
import { LogPanel } from "./logpanel.js";
import { timeline } from "./timeline.js";
import { isWorkflow, workflowAddress, workflowLink } from "./workflowcolumns.js";

const OVER = ["done", "failed", "cancelled", "expired", "dead"];
const NO_LIMIT = "it is deleted, or there are too many";
const FAILED = ["failed", "dead"];
const FUTURE = ["run_at", "expires_at", "removed_at"]; // fields with times that may be to come

export function openJob(root, handle, signal) {
  const problem = problemBox();
  const details = make("div", { class: "job" });
  const payload = new BytesPanel("Payload", handle, signal);
  const log = new LogPanel(handle, signal);
  const result = new BytesPanel("Result", handle, signal, (bytes) => tracebackOf(job, bytes));
  const parts = { head: make("div", { class: "head" }), facts: make("div"), timeline: make("div"), trace: make("div") };
  const follower = new Follower(handle, () => refresh(), signal);
  let shownAs = "";
  let job = null;

  async function load() {
    job = await get(`jobs/${handle}`, {}, signal);
    const signature = JSON.stringify(job);
    if (signature !== shownAs) {
      shownAs = signature;
      show(parts, job, () => job, refresh);
      await log.load();
    }
    follower.follow(job);
    if (FAILED.includes(job.state)) payload.element.before(result.element); // what a worker sent with the failure
    else follower.element.after(result.element);
    await Promise.all([payload.show(job.payload_size), result.show(job.result_size, job.result_kept)]);
  }

  details.append(
    make(
      "div",
      { class: "two" },
      make("section", { class: "card", "aria-label": "Details" }, parts.facts),
      make(
        "section",
        { class: "card", "aria-label": "Timeline" },
        make("div", { class: "card-head" }, make("h2", {}, "Timeline")),
        parts.timeline,
      ),
    ),
  );
  parts.head.append(make("h1", { class: "mono" }, decoded(handle)));
  root.append(parts.head, problem.element, details, parts.trace, log.element, payload.element, follower.element, result.element);
  const refresh = autoRefresh(load, signal, (error) => {
    problem.show(error);
    details.hidden = job === null;
  });
}

function show(parts, job, current, refresh) {
  const afterwards = (verb) => {
    if (verb === "delete") location.hash = "#/jobs";
    else refresh();
  };
  const again = make(
    "button",
    {
      type: "button",
      "data-needs": "submit",
      hidden: isWorkflow(job) || !may("submit", shown(job.function)),
      on: { click: action(() => submitLike(current())) },
    },
    "Submit again",
  );
  parts.head.replaceChildren(
    make("h1", { class: "mono" }, shown(job.handle)),
    badge(job.state),
    isWorkflow(job) ? make("a", { class: "button", href: workflowAddress(job.handle) }, "Show the workflow") : "",
    make("span", { class: "push" }),
    make("div", { class: "row" }, ...jobButtons(job.state, current, afterwards, ""), again),
  );
  parts.facts.replaceChildren(route(job), job.state === "running" ? progress(job) : "", factsOf(job));
  parts.timeline.replaceChildren(timeline(job));
  // If there is a result, it is the whole of what the reason is the beginning of.
  const traced = FAILED.includes(job.state) && !job.result_size && hasTraceback(job.reason);
  parts.trace.replaceChildren(...(traced ? [tracebackCard(job.reason)] : []));
}

/** What a worker sends with a failure is mostly a traceback, of which the reason is the beginning. */
function tracebackOf(job, bytes) {
  const text = FAILED.includes(job.state) ? decode(bytes) : null;
  return text !== null && hasTraceback(text) ? tracebackCard(text) : null;
}

async function submitLike(job) {
  const payload = textOfBytes(await download(`jobs/${encoded(job.handle)}/payload`));
  askForJob({ function: shown(job.function), payload, priority: job.priority });
}

/** The worker that runs it, or ran it last. */
function lastWorker(job) {
  const trial = job.trials.at(-1);
  return job.worker_door || !trial
    ? { name: shown(job.worker), door: job.worker_door }
    : { name: shown(trial.worker), door: trial.door };
}

/** The protocol of its client, its function, and the protocol of its worker. */
function route(job) {
  const last = lastWorker(job);
  const door = (name, title) => make("span", { class: "door", title }, name);
  return make(
    "div",
    { class: "route" },
    door(job.door, "Protocol of the client"),
    make("span", { class: "arrow", "aria-hidden": "true" }, "→"),
    functionLink(job.function),
    make("span", { class: "arrow", "aria-hidden": "true" }, "→"),
    last.door ? door(last.door, "Protocol of the worker") : make("span", { class: "soft" }, "no worker yet"),
  );
}

function progress(job) {
  if (!job.denominator) return "";
  const bar = make("progress", { max: job.denominator, value: job.numerator, "aria-label": "Progress" });
  return make(
    "p",
    { class: "progress" },
    bar,
    make("span", { class: "small soft" }, `${job.numerator} of ${job.denominator}`),
  );
}

function factsOf(job) {
  const at = (value) => {
    if (value === null) return null;
    const style = FUTURE.some((name) => value === job[name]) ? "until" : "ago";
    return make("span", {}, dateTime(value), " ", make("span", { class: "soft" }, "(", time(value, style), ")"));
  };
  const started = job.started_at;
  const first = job.trials[0]?.started_at ?? started;
  const last = lastWorker(job);
  return facts([
    ["Function", functionLink(job.function)],
    isWorkflow(job) ? ["Workflow", workflowLink(job)] : null,
    ["Unique key", shown(job.unique) ? make("span", { class: "mono" }, shown(job.unique)) : "none"],
    shown(job.partition) ? ["Partition", make("span", { class: "mono" }, shown(job.partition))] : null,
    job.waits_for ? ["Waits for", job.waits_for] : null,
    job.after.length && !isWorkflow(job) ? ["Runs after", make("span", {}, ...job.after.flatMap(parentLink))] : null,
    ["Kind", `${job.background ? "background" : "foreground"}, ${job.priority} priority`],
    ["Submitted", at(job.submitted_at)],
    job.run_at > job.submitted_at + 0.5 ? ["Runs at", at(job.run_at)] : null,
    first === null ? null : ["Waited", duration(Math.max(0, first - readyAt(job)))],
    started === null || job.finished_at === null
      ? null
      : [job.trials.length > 1 ? "Last attempt ran" : "Ran", duration(job.finished_at - started)],
    ["Attempts", plural(job.attempts, "attempt")],
    ["Timeout", job.timeout ? duration(job.timeout) : "none"],
    job.expires_at ? ["Expires", at(job.expires_at)] : null,
    ["Worker", last.name || (last.door ? "(no name)" : "none yet")],
    job.code ? ["Code", String(job.code)] : null,
    job.reason ? ["Reason", summary(job.reason)] : null,
    ["Sizes", `payload ${size(job.payload_size)}, result ${size(job.result_size)}${cut(job)}`],
    OVER.includes(job.state) ? ["Kept until", job.removed_at === null ? NO_LIMIT : at(job.removed_at)] : null,
  ]);
}

function parentLink(handle) {
  return [make("a", { class: "mono", href: link(`jobs/${encoded(handle)}`) }, shown(handle)), " "];
}

function cut(job) {
  return isPart(job.result_size, job.result_kept) ? ` (cut: the first ${size(job.result_kept)} are kept)` : "";
}

/** When it could first run; after an attempt, `run_at` belongs to the next one. */
function readyAt(job) {
  return job.trials.length ? job.submitted_at : Math.max(job.submitted_at, job.run_at ?? 0);
}
