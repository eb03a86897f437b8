// The graph of a workflow: jobs that are alike are one node, and lines lead from each to those that wait for it.
//
// Nodes are links and buttons over an SVG with the lines. Layers go from left to right, on a narrow page from top to
// bottom. A refresh changes states in place; nodes move only if the graph or the width of the page has changed.
import { draw, make, setAttribute, setText } from "../lib/dom.js";
import { count, plural } from "../lib/format.js";
import { layOut } from "../lib/layers.js";
import { link } from "../lib/router.js";
import { mainState, overOf, percent, StateBar, statesText } from "../lib/states.js";
import { encoded, shown } from "../lib/text.js";
import { cutName } from "../lib/widgets.js";
import { buttonsFor } from "./workflowjobs.js";

const NAME_SHOWN = 12; // characters that fit the narrowest node

// Pixels.
const HEIGHT = 58;
const NARROW = 600; // from top to bottom below this width
const ARROW = 5;
const AIR = 2; // between an arrow and its node
const PADDING = 32; // of the box around the graph, on both sides together
const DOWN = { least: 116, most: 190, gap: 12, between: 40 };
const RIGHT = { least: 120, good: 150, most: 220, gap: 16, tight: 24, between: 64 };

export class WorkflowGraph {
  /** `onGroup` is called with the place of the first job of a group that was clicked, or "" for all of them. */
  constructor(onGroup, changed, signal) {
    this.onGroup = onGroup;
    this.changed = changed;
    this.nodes = [];
    this.structure = "";
    this.lines = draw("svg", { "aria-hidden": "true" });
    this.list = make("ol");
    this.canvas = make("div", { class: "graph-canvas" }, this.lines, this.list);
    this.scroll = make("div", { class: "graph-scroll" }, this.canvas);
    this.note = make("p", { class: "soft small" });
    this.element = make(
      "section",
      { class: "card graph", "aria-label": "Graph" },
      make("div", { class: "card-head" }, make("h2", {}, "Graph"), this.note),
      this.scroll,
    );
    this.width = 0;
    const observer = new ResizeObserver(() => this.#fit());
    observer.observe(this.scroll);
    signal.addEventListener("abort", () => observer.disconnect());
  }

  show(workflow, chosen) {
    const { groups } = workflow;
    this.element.hidden = groups.length === 0;
    const structure = JSON.stringify(groups.map(({ first, parents }) => [first, parents]));
    if (structure !== this.structure) this.#build(groups);
    this.structure = structure;
    groups.forEach((group, index) => this.nodes[index].show(group, chosen));
    this.#colourLines(groups);
    setText(this.note, notesOf(workflow).join(" "));
  }

  #build(groups) {
    this.parents = groups.map(({ parents }) => parents.filter((parent) => parent < groups.length));
    this.layout = layOut(this.parents);
    const names = groups.map((group) => nameOf(group));
    this.nodes = groups.map((group, index) => {
      const after = this.parents[index].map((parent) => names[parent]);
      return new Node(group, after, this.onGroup, this.changed);
    });
    this.list.replaceChildren(...this.layout.layers.flat().map((index) => this.nodes[index].element));
    this.#buildLines(groups);
    this.width = 0;
    this.#fit();
  }

  /** Two lines for each node: to those that wait for it, and dashed to those that run whatever it comes to. */
  #buildLines(groups) {
    this.paths = new Map();
    for (const edge of this.layout.edges) {
      const anyway = groups[edge.to].on_failure === "run";
      const key = `${edge.from} ${anyway}`;
      if (!this.paths.has(key)) {
        const element = draw("path", { class: anyway ? "anyway" : null });
        this.paths.set(key, { from: edge.from, edges: [], element });
      }
      this.paths.get(key).edges.push(edge);
    }
    this.lines.replaceChildren(...[...this.paths.values()].map(({ element }) => element));
  }

  #colourLines(groups) {
    for (const { from, element } of this.paths.values()) {
      const { states, count: all } = groups[from];
      const over = (states.done ?? 0) + (states.ended ?? 0) === all;
      setAttribute(element, "data-tone", over ? "done" : states.failed || states.dead ? "failed" : null);
    }
  }

  #fit() {
    const width = this.scroll.clientWidth - PADDING;
    if (width <= 0 || width === this.width || !this.layout) return;
    this.width = width;
    const isFirst = this.canvas.style.width === "";
    const plan = width < NARROW ? downwards(this.layout, width) : rightwards(this.layout, width);
    this.canvas.style.width = `${plan.width}px`;
    this.canvas.style.height = `${plan.height}px`;
    setAttribute(this.lines, "viewBox", `0 0 ${plan.width} ${plan.height}`);
    this.layout.places.forEach((place, index) => this.nodes[index].move(plan.corner(place), plan.node));
    for (const { edges, element } of this.paths.values())
      setAttribute(element, "d", edges.map((edge) => plan.line(this.layout, edge)).join(""));
    if (isFirst && width < NARROW) this.scroll.scrollLeft = (this.scroll.scrollWidth - this.scroll.clientWidth) / 2;
  }
}

function notesOf({ groups, count: all }) {
  const notes = [];
  const jobs = groups.reduce((sum, group) => sum + group.count, 0);
  if (jobs < all)
    notes.push(`The first ${count(groups.length)} groups are shown, with ${count(jobs)} of ${plural(all, "job")}.`);
  if (groups.some((group) => group.on_failure === "run" && group.parents.length))
    notes.push("Dashed: runs even if the job before it fails.");
  return notes;
}

/** The place of everything with layers from left to right. */
function rightwards({ layers, breadth }, width) {
  const gaps = layers.length - 1;
  const room = (width - layers.length * RIGHT.good) / Math.max(gaps, 1); // between nodes that are wide enough
  const between = within(Math.floor(room), RIGHT.tight, RIGHT.between);
  const node = within(Math.floor((width - gaps * between) / layers.length), RIGHT.least, RIGHT.most);
  const step = HEIGHT + RIGHT.gap;
  const x = (layer) => layer * (node + between);
  const y = (at) => at * step - RIGHT.gap / 2;
  const point = (along, across) => `${round(along)} ${round(across)}`;
  return {
    node,
    width: x(gaps) + node,
    height: round(breadth * step - RIGHT.gap),
    corner: ({ layer, at }) => [x(layer), y(at) - HEIGHT / 2],
    line: (layout, edge) => lineOf(layout, edge, { along: x, across: y, length: node, point }),
  };
}

/** The same from top to bottom. */
function downwards({ layers, breadth }, width) {
  const node = within(Math.floor((width + DOWN.gap) / breadth) - DOWN.gap, DOWN.least, DOWN.most);
  const step = node + DOWN.gap;
  const x = (at) => at * step - DOWN.gap / 2;
  const y = (layer) => layer * (HEIGHT + DOWN.between);
  const point = (along, across) => `${round(across)} ${round(along)}`;
  return {
    node,
    width: round(breadth * step - DOWN.gap),
    height: y(layers.length - 1) + HEIGHT,
    corner: ({ layer, at }) => [x(at) - node / 2, y(layer)],
    line: (layout, edge) => lineOf(layout, edge, { along: y, across: x, length: HEIGHT, point }),
  };
}

/** A curve from the end of one node to the beginning of another, straight through the layers between, with an arrow. */
function lineOf({ places }, edge, { along, across, length, point }) {
  const first = places[edge.from];
  const last = places[edge.to];
  let at = [along(first.layer) + length, across(first.at)];
  let path = `M${point(...at)}`;
  for (const stop of [...edge.points, last]) {
    const next = [along(stop.layer) - (stop === last ? AIR : 0), across(stop.at)];
    const middle = (at[0] + next[0]) / 2;
    path += `C${point(middle, at[1])} ${point(middle, next[1])} ${point(...next)}`;
    at = next;
    if (stop === last) break;
    at = [next[0] + length, next[1]];
    path += `L${point(...at)}`;
  }
  const wing = (side) => point(at[0] - ARROW, at[1] + side * ARROW * 0.8);
  return `${path}M${wing(-1)}L${point(...at)}L${wing(1)}`;
}

function within(number, least, most) {
  return Math.min(Math.max(number, least), most);
}

function round(pixels) {
  return Math.round(pixels * 10) / 10;
}

function nameOf(group) {
  const name = shown(group.function) || "(no name)";
  return group.count > 1 ? `${name} × ${count(group.count)}` : name;
}

/** "41%", or the state of all of them. */
function stateOf({ states, count: all }) {
  const state = mainState(states);
  return states[state] === all ? state : `${percent(overOf(states), all)}%`;
}

/** A job, which is a link to its page, or a group of jobs, which is a button that lists them. */
class Node {
  constructor(group, after, onGroup, changed) {
    this.single = group.count === 1;
    this.after = after.length ? `, after ${after.join(", ")}` : "";
    this.group = group;
    this.bar = new StateBar();
    this.text = make("span", { class: "graph-text" });
    const name = make("span", { class: "graph-name" }, ...cutName(group.function, NAME_SHOWN));
    const times = make("span", { class: "graph-times" }, `× ${count(group.count)}`);
    const below = make("span", { class: "graph-below" }, this.text, this.single ? null : times);
    const click = () => onGroup(this.isChosen ? "" : String(this.group.first));
    this.face = this.single
      ? make("a", { class: "graph-face", href: link(`jobs/${encoded(group.handle)}`) }, name, below)
      : make("button", { type: "button", class: "graph-face", on: { click } }, name, below, this.bar.element);
    this.buttons = make("span", { class: "graph-buttons" });
    this.element = make("li", { class: "graph-node" }, this.face, this.buttons);
    this.changed = changed;
  }

  show(group, chosen) {
    const state = mainState(group.states);
    const isOther = this.element.dataset.tone !== state;
    this.group = group;
    this.isChosen = !this.single && chosen === String(group.first);
    this.element.dataset.tone = state;
    this.bar.show(group.states);
    setText(this.text, this.single ? state : stateOf(group));
    const states = this.single ? state : statesText(group.states);
    const description = `${nameOf(group)}: ${states}${this.after}`;
    setAttribute(this.face, "aria-label", description);
    setAttribute(this.face, "title", description);
    if (!this.single) setAttribute(this.face, "aria-pressed", String(this.isChosen));
    if (isOther && this.single) this.buttons.replaceChildren(...buttonsFor(state, () => this.group, this.changed));
  }

  move([left, top], width) {
    const { style } = this.element;
    style.left = `${round(left)}px`;
    style.top = `${round(top)}px`;
    style.width = `${width}px`;
  }
}
