// One job: details, timeline, payload and result.
import { address, download, get, isAbort } from "../lib/api.js";
import { bytesView } from "../lib/bytes.js";
import { jobButtons } from "../lib/actions.js";
import { make } from "../lib/dom.js";
import { duration, dateTime, plural, size } from "../lib/format.js";
import { autoRefresh } from "../lib/refresh.js";
import { badge, facts, functionLink, problemBox } from "../lib/widgets.js";
import { askForJob } from "../lib/submit.js";
import { decoded, shown } from "../lib/text.js";
import { time } from "../lib/time.js";
import { Follower } from "./follow.js";
import { timeline } from "./timeline.js";

const OVER = ["done", "failed", "cancelled", "expired"];
const MOST_LOADED = 4 * 1024 * 1024; // bytes; larger ones can only be downloaded

export function openJob(root, handle, signal) {
  const problem = problemBox();
  const details = make("div", { class: "job" });
  const payload = new BytesPanel("Payload", handle, signal);
  const result = new BytesPanel("Result", handle, signal);
  const parts = { head: make("div", { class: "head" }), facts: make("div"), timeline: make("div") };
  const follower = new Follower(handle, () => refresh(), signal);
  let shownAs = "";
  let job = null;

  async function load() {
    job = await get(`jobs/${handle}`, {}, signal);
    const signature = JSON.stringify(job);
    if (signature !== shownAs) {
      shownAs = signature;
      show(parts, job, () => job, refresh);
    }
    follower.follow(job);
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
  root.append(parts.head, problem.element, details, payload.element, follower.element, result.element);
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
    { type: "button", "data-needs": "submit", on: { click: () => submitLike(current()) } },
    "Submit again",
  );
  parts.head.replaceChildren(
    make("h1", { class: "mono" }, shown(job.handle)),
    badge(job.state),
    make("span", { class: "push" }),
    make("div", { class: "row" }, ...jobButtons(job.state, current, afterwards, ""), again),
  );
  parts.facts.replaceChildren(route(job), job.state === "running" ? progress(job) : "", factsOf(job));
  parts.timeline.replaceChildren(timeline(job));
}

async function submitLike(job) {
  let text = shown(job.payload ?? "");
  try {
    text = new TextDecoder().decode(await download(`jobs/${encodeURIComponent(shown(job.handle))}/payload`));
  } catch {
    // Fall back to the part of the payload that the page has.
  }
  askForJob({ function: shown(job.function), payload: text, priority: job.priority });
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
  const at = (value) =>
    value === null
      ? null
      : make(
          "span",
          {},
          dateTime(value),
          " ",
          make("span", { class: "soft" }, "(", time(value, value === job.run_at ? "until" : "ago"), ")"),
        );
  const started = job.started_at;
  const first = job.trials[0]?.started_at ?? started;
  const last = lastWorker(job);
  return facts([
    ["Function", functionLink(job.function)],
    ["Unique key", shown(job.unique) ? make("span", { class: "mono" }, shown(job.unique)) : "none"],
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
    job.reason ? ["Reason", job.reason] : null,
    ["Sizes", `payload ${size(job.payload_size)}, result ${size(job.result_size)}${cut(job)}`],
    OVER.includes(job.state) ? ["Record", "kept for a limited time after the end"] : null,
  ]);
}

function cut(job) {
  return isPart(job.result_size, job.result_kept) ? ` (cut: the first ${size(job.result_kept)} are kept)` : "";
}

function isPart(amount, kept) {
  return kept !== null && kept !== undefined && kept < amount;
}

/** When it could first run; after an attempt, `run_at` belongs to the next one. */
function readyAt(job) {
  return job.trials.length ? job.submitted_at : Math.max(job.submitted_at, job.run_at ?? 0);
}

/** A payload or result; loaded once, and again only when its size changes. */
class BytesPanel {
  constructor(label, handle, signal) {
    this.name = label;
    this.label = label;
    this.resource = `jobs/${handle}/${label.toLowerCase()}`;
    this.path = this.resource;
    this.signal = signal;
    this.size = undefined;
    this.element = make("div");
  }

  async show(amount, kept = null) {
    if (amount === this.size) return;
    this.size = amount;
    const part = isPart(amount, kept);
    this.label = part ? `${this.name}, the first ${size(kept)} of ${size(amount)}` : this.name;
    this.path = part ? `${this.resource}?part=true` : this.resource;
    if (amount === null) this.element.replaceChildren();
    else if (amount > MOST_LOADED) this.element.replaceChildren(this.#offer(amount));
    else await this.#load();
  }

  async #load() {
    try {
      const bytes = await download(this.path, this.signal);
      this.element.replaceChildren(bytesView(this.label, bytes, address(this.path)));
    } catch (error) {
      this.size = undefined;
      if (!isAbort(error))
        this.element.replaceChildren(make("p", { class: "card soft" }, `${this.label}: ${error.message}`));
    }
  }

  #offer(amount) {
    const save = make("a", { class: "button", href: address(this.path), download: "" }, "Download");
    return make(
      "section",
      { class: "card row" },
      make("h2", {}, this.label),
      make("span", { class: "soft" }, `${size(amount)}, too large to show`),
      save,
    );
  }
}
