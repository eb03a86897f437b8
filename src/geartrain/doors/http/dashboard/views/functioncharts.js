// The charts of a function over the last hour, from the samples that the server keeps.
import { get } from "../lib/api.js";
import { Chart } from "../lib/chart.js";
import { make } from "../lib/dom.js";
import { count, duration, rate } from "../lib/format.js";
import { percentileCard } from "../lib/percentiles.js";
import { autoRefresh } from "../lib/refresh.js";
import { segments } from "../lib/widgets.js";

const RANGES = [
  ["900", "15 min"],
  ["3600", "1 hour"],
];
const REFRESH = 5; // seconds; the server takes a sample every 15

/** Elements of the page of a function: `range` chooses the time, `element` has the charts. */
export function functionCharts(name, signal, onProblem) {
  const charts = makeCharts();
  const percentiles = percentileCard();
  const none = make("p", { class: "soft card", hidden: true });
  const grid = make("div", { class: "function-charts" }, ...charts.map((chart) => chart.element), percentiles.element);
  let seconds = 3600;

  async function load() {
    const history = await get(`functions/${name}/history`, { seconds }, signal);
    for (const chart of charts) chart.update(history.samples, seconds);
    percentiles.show(history);
    grid.hidden = !history.measured;
    none.hidden = history.measured;
    none.textContent = "There is no history yet: it begins with the first job that a worker takes.";
  }

  const refresh = autoRefresh(load, signal, onProblem, REFRESH);
  const range = segments("Time range of the charts", RANGES, String(seconds), (chosen) => {
    seconds = Number(chosen);
    refresh();
  });
  return { range, element: make("div", {}, none, grid) };
}

function makeCharts() {
  const times = (title, field, tone) => ({
    title,
    format: duration,
    axis: duration,
    series: [
      { name: "p50", field: `${field}_p50`, tone, area: true },
      { name: "p95", field: `${field}_p95`, tone, dashed: true },
    ],
  });
  const kinds = [
    {
      title: "Jobs per second",
      format: (value) => `${rate(value)}/s`,
      series: [
        { name: "submitted", field: "submitted", tone: "running" },
        { name: "completed", field: "completed", tone: "done", area: true },
        { name: "failed", field: "failed", tone: "failed", dashed: true },
      ],
    },
    {
      title: "Queue",
      format: count,
      integers: true,
      series: [
        { name: "queued", field: "queued", tone: "queued", area: true },
        { name: "running", field: "running", tone: "running" },
      ],
    },
    times("Wait time", "wait", "queued"),
    times("Run time", "run", "running"),
  ];
  return kinds.map((kind) => new Chart({ ...kind, low: true }));
}
