// A line chart over time: SVG with axes, values at the pointer or by arrow keys, and the data as a table.
import { draw, inFrame, make, setAttribute, setText } from "./dom.js";
import { plural, short, timeOfDay } from "./format.js";
import { timesBetween, thinned, ticksUpTo } from "./scale.js";

const LEFT = 42;
const BOTTOM = 20;
const TOP = 6;
const RIGHT = 4;
const TABLE_ROWS = 8;
const SHORTEST = 60; // seconds

/**
 * `series`: `[{ name, field, tone, dashed?, area? }]`; points are objects with `at` and the fields, null for no value.
 * `format(value)` writes a value, `axis(value)` a tick; `integers` keeps fractions off the axis.
 */
export class Chart {
  constructor({ title, series, format, axis = short, low = false, integers = false }) {
    this.series = series;
    this.format = format;
    this.axis = axis;
    this.integers = integers;
    this.title = title;
    this.points = [];
    this.seconds = 300;
    this.cursor = null; // index of the selected point
    this.#build(low);
  }

  /** Show these points, which end now, over at most this many seconds. */
  update(points, seconds) {
    this.points = thinned(points, 400);
    // After a start there is less history: let it fill the chart.
    const known = points.length ? points.at(-1).at - points[0].at : 0;
    this.seconds = Math.min(seconds, Math.max(SHORTEST, known));
    inFrame(this, () => this.#draw());
  }

  #build(low) {
    this.values = this.series.map(() => make("b"));
    const legend = this.series.map((series, index) =>
      make("li", { data: { tone: series.tone } }, series.name, this.values[index]),
    );
    this.svg = draw("svg", { "aria-hidden": "true", focusable: "false" });
    this.back = draw("g");
    this.areas = this.series.map((series) => draw("path", { class: "area", "data-tone": series.tone }));
    this.lines = this.series.map((series) =>
      draw("path", { class: series.dashed ? "line dashed" : "line", "data-tone": series.tone }),
    );
    this.front = draw("g");
    this.svg.append(this.back, ...this.areas, ...this.lines, this.front);
    this.tip = make("div", { class: "tip", hidden: true });
    this.plot = make(
      "div",
      { class: low ? "plot low" : "plot", tabindex: "0", role: "img", "aria-roledescription": "chart" },
      this.svg,
      this.tip,
    );
    this.announcement = make("p", { class: "visually-hidden", "aria-live": "polite" });
    this.table = make("table");
    this.details = make("details", {}, make("summary", {}, "Show as table"), this.table);
    this.details.addEventListener("toggle", () => this.#drawTable());
    const head = make(
      "div",
      { class: "chart-head" },
      make("h2", {}, this.title),
      make("ul", { class: "legend" }, ...legend),
    );
    this.element = make("figure", { class: "card chart" }, head, this.plot, this.announcement, this.details);
    this.#listen();
  }

  #listen() {
    const redraw = () => inFrame(this, () => this.#draw());
    new ResizeObserver(redraw).observe(this.plot);
    this.plot.addEventListener("pointermove", (event) => this.#point(event));
    this.plot.addEventListener("pointerleave", () => this.#leave());
    this.plot.addEventListener("blur", () => this.#leave());
    this.plot.addEventListener("keydown", (event) => this.#press(event));
  }

  #leave() {
    this.cursor = null;
    inFrame(this, () => this.#draw());
  }

  #point(event) {
    const x = event.clientX - this.plot.getBoundingClientRect().left;
    const nearest = this.points.reduce(
      (best, point, index) =>
        Math.abs(this.#x(point.at) - x) < Math.abs(this.#x(this.points[best].at) - x) ? index : best,
      0,
    );
    this.cursor = this.points.length ? nearest : null;
    inFrame(this, () => this.#draw());
  }

  #press(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || this.points.length === 0) return;
    event.preventDefault();
    const last = this.points.length - 1;
    this.cursor = Math.min(last, Math.max(0, (this.cursor ?? last) + step));
    const point = this.points[this.cursor];
    const values = this.series.map((series) => `${series.name} ${this.format(point[series.field])}`);
    setText(this.announcement, `${timeOfDay(point.at)}: ${values.join(", ")}`);
    inFrame(this, () => this.#draw());
  }

  #x(at) {
    const until = this.points.at(-1)?.at ?? 0;
    return LEFT + (1 - (until - at) / this.seconds) * (this.width - LEFT - RIGHT);
  }

  #y(value) {
    return TOP + (1 - value / this.top) * (this.height - TOP - BOTTOM);
  }

  #draw() {
    this.width = this.plot.clientWidth;
    this.height = this.plot.clientHeight;
    if (!this.width) return;
    setAttribute(this.svg, "viewBox", `0 0 ${this.width} ${this.height}`);
    const highest = Math.max(0, ...this.points.flatMap((point) => this.series.map((series) => point[series.field])));
    const ticks = ticksUpTo(highest, this.height > 150 ? 4 : 2, this.integers, this.axis === short ? 1 : 0);
    this.top = ticks.at(-1) || 1;
    this.#drawAxes(ticks);
    this.series.forEach((series, index) => this.#drawLine(series, index));
    this.#drawCursor();
    setAttribute(this.plot, "aria-label", this.#summary());
    if (this.details.open) this.#drawTable();
  }

  #drawAxes(ticks) {
    const parts = [];
    for (const tick of ticks) {
      const y = Math.round(this.#y(tick));
      parts.push(draw("line", { class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y }));
      parts.push(draw("text", { class: "axis", x: LEFT - 8, y: y + 4, "text-anchor": "end" }, this.axis(tick)));
    }
    const until = this.points.at(-1)?.at;
    if (until !== undefined) {
      for (const at of timesBetween(until - this.seconds, until, Math.floor(this.width / 90))) {
        const x = this.#x(at);
        if (x < LEFT + 18 || x > this.width - 18) continue;
        parts.push(draw("text", { class: "axis", x, y: this.height - 4, "text-anchor": "middle" }, axisTime(at)));
      }
    }
    this.back.replaceChildren(...parts);
  }

  #drawLine(series, index) {
    const inside = this.points.filter((point) => point.at >= this.points.at(-1).at - this.seconds);
    const runs = runsOf(inside, series.field).map((points) => ({
      line: points
        .map((point) => `${this.#x(point.at).toFixed(1)} ${this.#y(point[series.field]).toFixed(1)}`)
        .join("L"),
      ends: [this.#x(points[0].at), this.#x(points.at(-1).at)],
    }));
    // A single value between gaps is a dot: a line of no length with round ends.
    const lines = runs.map(({ line, ends }) => (ends[0] === ends[1] ? `M${line}h0` : `M${line}`));
    setAttribute(this.lines[index], "d", lines.join("") || null);
    if (series.area) {
      const floor = this.#y(0);
      const areas = runs.map(({ line, ends }) => `M${ends[0]} ${floor}L${line}L${ends[1]} ${floor}Z`);
      setAttribute(this.areas[index], "d", areas.join("") || null);
    }
    const last = inside.at(-1);
    setText(this.values[index], last ? this.format(last[series.field]) : "");
  }

  #drawCursor() {
    const point = this.cursor === null ? undefined : this.points[this.cursor];
    this.tip.hidden = point === undefined;
    if (point === undefined) {
      this.front.replaceChildren();
      return;
    }
    const x = this.#x(point.at);
    this.front.replaceChildren(
      draw("line", { class: "cross", x1: x, x2: x, y1: TOP, y2: this.height - BOTTOM }),
      ...this.series.filter((series) => point[series.field] !== null).map((series) =>
        draw("circle", { class: "dot", "data-tone": series.tone, cx: x, cy: this.#y(point[series.field]), r: 4 }),
      ),
    );
    const rows = this.series.flatMap((series) => [
      make("dt", { data: { tone: series.tone } }, series.name),
      make("dd", {}, this.format(point[series.field])),
    ]);
    this.tip.replaceChildren(make("span", { class: "soft" }, timeOfDay(point.at)), make("dl", {}, ...rows));
    const left = x + 12 + this.tip.offsetWidth > this.width ? x - 12 - this.tip.offsetWidth : x + 12;
    this.tip.style.transform = `translateX(${Math.round(left)}px)`;
  }

  /** A description for screen readers. */
  #summary() {
    if (this.points.length === 0) return `${this.title}: no data yet`;
    const descriptions = this.series.map((series) => {
      const values = this.points.map((point) => point[series.field]).filter((value) => value !== null);
      if (values.length === 0) return `${series.name} has no values`;
      const [low, high] = [Math.min(...values), Math.max(...values)].map(this.format);
      return `${series.name} now ${this.format(values.at(-1))}, lowest ${low}, highest ${high}`;
    });
    const span = plural(Math.round(this.seconds / 60), "minute");
    return `${this.title}, last ${span}: ${descriptions.join("; ")}. Use the arrow keys to read single values.`;
  }

  #drawTable() {
    if (!this.details.open) return;
    const step = Math.max(1, Math.floor(this.points.length / TABLE_ROWS));
    const sampled = this.points
      .filter((_, index) => (this.points.length - 1 - index) % step === 0)
      .slice(-TABLE_ROWS)
      .reverse();
    const head = make(
      "tr",
      {},
      make("th", { scope: "col" }, "Time"),
      ...this.series.map((series) => make("th", { scope: "col", class: "number" }, series.name)),
    );
    const rows = sampled.map((point) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, timeOfDay(point.at)),
        ...this.series.map((series) => make("td", { class: "number" }, this.format(point[series.field]))),
      ),
    );
    this.table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
  }
}

/** The points without those that have no value, split where they were. */
function runsOf(points, field) {
  const runs = [];
  let open = false;
  for (const point of points) {
    if (point[field] === null) open = false;
    else if (open) runs.at(-1).push(point);
    else {
      runs.push([point]);
      open = true;
    }
  }
  return runs;
}

function axisTime(at) {
  const text = timeOfDay(at);
  return text.endsWith(":00") ? text.slice(0, -3) : text;
}
