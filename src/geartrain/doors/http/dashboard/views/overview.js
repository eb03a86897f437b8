// The overview of the server.
import { get, isAbort } from "../lib/api.js";
import { Chart } from "../lib/chart.js";
import { emptyWithCommands } from "../lib/commands.js";
import { inFrame, make, setText } from "../lib/dom.js";
import { count, plural, rate } from "../lib/format.js";
import { percentileCard } from "../lib/percentiles.js";
import { autoRefresh } from "../lib/refresh.js";
import * as live from "../lib/live.js";
import { functionLink, jobLink, problemBox, segments, tile } from "../lib/widgets.js";
import { setTime, time } from "../lib/time.js";
import { link } from "../lib/router.js";
import { shown } from "../lib/text.js";

export const title = () => "Overview";

const RANGES = [
  ["300", "5 min"],
  ["900", "15 min"],
  ["3600", "1 hour"],
];
const perSecond = (value) => `${rate(value)}/s`;
const BUSIEST = 8;
const LATEST = 6;
const SHORTEST = 0.9; // seconds between two points of a chart; a rate over less is too noisy
const LONGEST = 5; // seconds; after a longer gap no point is added

export function open(root, route, signal) {
  const problem = problemBox();
  const tiles = makeTiles();
  const charts = makeCharts();
  const percentiles = percentileCard();
  const busiest = makeList("Longest queues", link("functions", { sort: "queued" }));
  const failed = makeList("Latest failures", link("failures"));
  const history = { points: [], seconds: 300, last: null };
  const first = make("div", { hidden: true });

  const load = () => loadHistory(history, charts, signal).catch((error) => isAbort(error) || problem.show(error));
  const range = segments("Time range of the charts", RANGES, "300", (seconds) => {
    history.seconds = Number(seconds);
    load();
  });
  root.append(
    make("div", { class: "head" }, make("h1", {}, "Overview"), make("span", { class: "push" }), range),
    problem.element,
    make("p", { class: "limited soft" }, "Totals are of all functions; lists have the functions that you may read."),
    tiles.element,
    first,
    make(
      "div",
      { class: "overview-charts" },
      charts.flow.element,
      make("div", { class: "stack" }, charts.queued.element, charts.running.element),
    ),
    make("div", { class: "cards" }, percentiles.element, busiest.element, failed.element),
  );

  const show = (now) => {
    problem.show(null);
    inFrame(tiles, () => {
      tiles.show(now);
      percentiles.show(now);
      first.hidden = now.submitted + now.queued + now.running + now.scheduled + now.blocked + now.dead > 0;
      if (!first.hidden && !first.firstChild) first.append(noJobs());
    });
    extend(history, now, charts);
  };
  live.onOverview(show, signal);
  live.onState((state) => state === "live" && load(), signal);
  get("overview", {}, signal).then(show, (error) => isAbort(error) || problem.show(error));
  load();
  autoRefresh(() => loadLists(busiest, failed, signal), signal, problem.show, 4);
}

function noJobs() {
  const text = "Start a worker, then submit a job. Both appear here at once.";
  return emptyWithCommands("No jobs yet", text, "worker", "client");
}

function makeTiles() {
  const all = {
    submitted: tile("Submitted", { tone: "running" }),
    completed: tile("Completed", { tone: "done" }),
    queued: tile("Queued", { tone: "queued", href: link("jobs", { state: "queued" }) }),
    running: tile("Running", { tone: "running", href: link("jobs", { state: "running" }) }),
    scheduled: tile("Scheduled", { tone: "scheduled", href: link("jobs", { state: "scheduled" }) }),
    dead: tile("Dead", { tone: "dead", href: link("failures", { state: "dead" }) }),
    oldest: tile("Oldest", { href: link("functions", { sort: "oldest" }) }),
    workers: tile("Workers", { href: link("workers") }),
  };
  const age = make("time");
  all.oldest.value.append(age);
  return {
    element: make("div", { class: "tiles eight" }, ...Object.values(all).map((one) => one.element)),
    show(now) {
      all.submitted.set(rate(now.submitted_rate), "/s", `${count(now.submitted)} in total`);
      all.completed.set(rate(now.completed_rate), "/s", `${count(now.failed)} failed`);
      all.queued.set(count(now.queued), "", now.queued ? plural(now.functions, "function") : "none");
      all.running.set(count(now.running), "", "now");
      all.scheduled.set(count(now.scheduled), "", now.blocked ? `${count(now.blocked)} blocked` : "for later");
      all.dead.set(count(now.dead), "", now.dead ? "need attention" : "none");
      setTime(age, now.oldest, "age");
      setText(all.oldest.note, now.oldest === null ? "none queued" : "queued job");
      all.workers.set(count(now.workers), "", `${count(now.connections)} connected`);
    },
  };
}

function makeCharts() {
  return {
    flow: new Chart({
      title: "Jobs per second",
      format: perSecond,
      series: [
        { name: "submitted", field: "submitted", tone: "running" },
        { name: "completed", field: "completed", tone: "done", area: true },
        { name: "failed", field: "failed", tone: "failed", dashed: true },
      ],
    }),
    queued: new Chart({
      title: "Queued",
      format: count,
      low: true,
      integers: true,
      series: [{ name: "queued", field: "queued", tone: "queued", area: true }],
    }),
    running: new Chart({
      title: "Running",
      format: count,
      low: true,
      integers: true,
      series: [{ name: "running", field: "running", tone: "running", area: true }],
    }),
  };
}

async function loadHistory(history, charts, signal) {
  history.points = await get("history", { seconds: history.seconds }, signal);
  drawCharts(history, charts);
}

/** Add a point from the changes since the previous overview. */
function extend(history, now, charts) {
  const before = history.last;
  const seconds = before === null ? Infinity : now.now - before.now;
  if (seconds < SHORTEST) return;
  history.last = now;
  if (seconds > LONGEST) return;
  const perSecondOf = (field) => Math.max(0, (now[field] - before[field]) / seconds);
  const newest = history.points.at(-1)?.at ?? 0;
  if (now.now <= newest) return;
  history.points.push({
    at: now.now,
    submitted: perSecondOf("submitted"),
    completed: perSecondOf("completed"),
    failed: perSecondOf("failed"),
    queued: now.queued,
    running: now.running,
  });
  const from = now.now - history.seconds;
  while (history.points.length && history.points[0].at < from) history.points.shift();
  drawCharts(history, charts);
}

function drawCharts(history, charts) {
  for (const chart of Object.values(charts)) chart.update(history.points, history.seconds);
}

function makeList(name, href) {
  const list = make("ul", { class: "plain" });
  const none = make("p", { class: "soft" }, "None.");
  const head = make(
    "div",
    { class: "card-head" },
    make("h2", {}, name),
    make("a", { class: "push small", href }, "Show all"),
  );
  return {
    element: make("section", { class: "card" }, head, list, none),
    show(rows) {
      none.hidden = rows.length > 0;
      list.replaceChildren(...rows);
    },
  };
}

async function loadLists(busiest, failed, signal) {
  const [functions, ...pages] = await Promise.all([
    get("functions", { sort: "queued", limit: BUSIEST }, signal),
    ...["failed", "dead"].map((state) => get("jobs", { state, limit: LATEST }, signal)),
  ]);
  const jobs = pages.flatMap((page) => page.items);
  jobs.sort((one, other) => (other.finished_at ?? 0) - (one.finished_at ?? 0));
  busiest.show(
    functions.items
      .filter((item) => item.queued > 0)
      .map((item) =>
        make(
          "li",
          {},
          make("span", { class: "main" }, functionLink(item.name)),
          make("span", { class: "side-note" }, item.workers ? plural(item.workers, "worker") : "no workers"),
          make("b", {}, count(item.queued)),
        ),
      ),
  );
  failed.show(
    jobs.slice(0, LATEST).map((job) =>
      make(
        "li",
        { title: job.reason },
        make(
          "span",
          { class: "main" },
          jobLink(job.handle),
          " ",
          make("span", { class: "soft" }, `${shown(job.function)}: ${job.reason}`),
        ),
        make("span", { class: "side-note" }, job.finished_at === null ? "" : time(job.finished_at)),
      ),
    ),
  );
}
