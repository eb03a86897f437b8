// One function: counts, charts of the last hour, latencies, jobs and workers.
import { may } from "../lib/access.js";
import { get } from "../lib/api.js";
import { pauseVerb, perform, plainButton, verbButton } from "../lib/actions.js";
import { make, setText } from "../lib/dom.js";
import { count, NONE, rate } from "../lib/format.js";
import { askForConcurrency, concurrencyText } from "../lib/concurrency.js";
import { askForLimits, askForSettings, limitsText } from "../lib/functionforms.js";
import { autoRefresh } from "../lib/refresh.js";
import { action } from "../lib/notice.js";
import { badge, problemBox, tile } from "../lib/widgets.js";
import { Rates } from "../lib/rates.js";
import { link } from "../lib/router.js";
import { askForJob } from "../lib/submit.js";
import { decoded, shown } from "../lib/text.js";
import { setTime } from "../lib/time.js";
import { VERBS } from "../lib/verbs.js";
import { functionCharts } from "./functioncharts.js";
import { jobColumns, jobTable } from "./jobtable.js";

export function openFunction(root, name, signal) {
  const problem = problemBox();
  const rates = new Rates();
  const tiles = makeTiles(name);
  const charts = functionCharts(name, signal, problem.show);
  const state = make("span");
  let item = null;
  const pauseOrResume = action(async () => {
    await perform(pauseVerb(item), item);
    refresh();
  });
  const pause = plainButton("pause", pauseOrResume, "", decoded(name));
  const table = jobTable(
    "Jobs of this function",
    jobColumns(["handle", "state", "payload", "submitted", "attempts", "actions"], () => refresh()),
  );
  const noJobs = make("p", { class: "soft card" }, "This function has no jobs.");

  async function load() {
    const [newest, jobs] = await Promise.all([
      get(`functions/${name}`, {}, signal),
      get("jobs", { function: { encoded: name }, limit: 20 }, signal),
    ]);
    item = newest;
    actions.hidden = false;
    rates.sample([item]);
    tiles.show(item, rates);
    state.replaceChildren(...statesOf(item));
    setText(pause, VERBS[pauseVerb(item)].label);
    table.update(jobs.items);
    table.element.hidden = jobs.items.length === 0;
    noJobs.hidden = jobs.items.length > 0;
  }

  // They act on the function that was loaded: nothing can be clicked before.
  const actions = make(
    "div",
    { class: "row", hidden: true },
    pause,
    plainButton("limit", action(async () => (await askForLimits(item)) && refresh()), "", decoded(name)),
    plainButton("limit_running", action(async () => (await askForConcurrency(item)) && refresh()), "", decoded(name)),
    plainButton("configure", action(async () => (await askForSettings(item)) && refresh()), "", decoded(name)),
    make(
      "button",
      {
        type: "button",
        "data-needs": "submit",
        hidden: !may("submit", decoded(name)),
        on: { click: () => askForJob({ function: shown(item.name) }) },
      },
      "Submit a job",
    ),
    verbButton(
      "drop",
      () => item ?? { name: decoded(name) },
      () => {
        location.hash = "#/functions";
      },
      "",
    ),
  );
  root.append(
    make(
      "div",
      { class: "head" },
      make("h1", { title: decoded(name) }, decoded(name)),
      state,
      make("span", { class: "push" }),
      actions,
    ),
    problem.element,
    tiles.element,
    make("div", { class: "head" }, make("h2", {}, "History"), make("span", { class: "push" }), charts.range),
    charts.element,
    make(
      "div",
      { class: "head" },
      make("h2", {}, "Jobs"),
      make("a", { class: "small", href: link("jobs", { function: { encoded: name } }) }, "Show all"),
    ),
    noJobs,
    table.element,
  );
  const refresh = autoRefresh(load, signal, problem.show);
}

function statesOf(item) {
  if (item.paused) return [badge("paused", "warn")];
  return item.waits_for ? [make("span", { class: "soft" }, `waits for ${item.waits_for}`)] : [];
}

function makeTiles(name) {
  const jobs = (state) => link("jobs", { state, function: { encoded: name } });
  const all = {
    queued: tile("Queued", { tone: "queued", href: jobs("queued") }),
    running: tile("Running", { tone: "running", href: jobs("running") }),
    scheduled: tile("Scheduled", { tone: "scheduled", href: jobs("scheduled") }),
    dead: tile("Dead", { tone: "dead", href: link("failures", { state: "dead", function: { encoded: name } }) }),
    flow: tile("Completed", { tone: "done" }),
    failed: tile("Failed", { tone: "failed", href: link("failures", { function: { encoded: name } }) }),
    workers: tile("Workers", { href: link("workers", { search: { encoded: name } }) }),
    limits: tile("Limits"),
  };
  const age = make("time");
  all.queued.note.append("oldest ", age);
  all.limits.value.parentElement.classList.add("compact");
  return {
    element: make("div", { class: "tiles eight" }, ...Object.values(all).map((one) => one.element)),
    show(item, rates) {
      setText(all.queued.value, count(item.queued));
      all.queued.note.hidden = item.oldest === null;
      for (const field of ["dead", "failed"]) all[field].set(count(item[field]));
      all.scheduled.set(count(item.scheduled), "", item.blocked ? `${count(item.blocked)} blocked` : "");
      const most = concurrencyText(item.running_limits);
      all.running.set(count(item.running), "", most === NONE ? "" : most);
      setTime(age, item.oldest, "age");
      all.flow.set(rate(rates.of(item, "completed")), "/s", `${count(item.completed)} done`);
      all.workers.set(count(item.workers), "", item.workers || !item.queued ? "" : "none connected");
      all.limits.set(limitsText(item.limits), "", "by priority");
    },
  };
}
