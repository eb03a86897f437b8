// The list of functions, or one function: `#/functions` and `#/functions/<name>`.
import { get } from "../lib/api.js";
import { emptyWithCommands } from "../lib/commands.js";
import { pauseVerb, plainButton, verbButton } from "../lib/actions.js";
import { make, setAttribute, setText } from "../lib/dom.js";
import { count, rate } from "../lib/format.js";
import { askForLimits, limitsText } from "../lib/functionforms.js";
import { autoRefresh } from "../lib/refresh.js";
import { action } from "../lib/notice.js";
import { badge, cutFunctionLink, empty, problemBox, searchField } from "../lib/widgets.js";
import { Rates } from "../lib/rates.js";
import { replaceQuery } from "../lib/router.js";
import { numberColumn, Pager, Table } from "../lib/table.js";
import { decoded, shown } from "../lib/text.js";
import { setTime } from "../lib/time.js";
import { openFunction } from "./function.js";

export function title(route) {
  return route.parts[0] ? decoded(route.parts[0]) : "Functions";
}

export function open(root, route, signal) {
  if (route.parts[0]) openFunction(root, route.parts[0], signal);
  else openList(root, route, signal);
}

function openList(root, route, signal) {
  const chosen = { search: decoded(route.query.search ?? ""), sort: route.query.sort ?? "name" };
  const rates = new Rates();
  const scale = { deepest: 1 };
  const problem = problemBox();
  const pager = new Pager(() => refresh());
  const table = new Table({
    label: "Functions",
    columns: columnsOf(rates, scale, () => refresh()),
    key: (row) => shown(row.name),
    onSort: (sort) => change({ sort }),
  });
  const none = make("div", { hidden: true });

  function change(part) {
    Object.assign(chosen, part);
    replaceQuery("functions", { ...chosen, sort: chosen.sort === "name" ? "" : chosen.sort });
    pager.reset();
    refresh();
  }

  async function load() {
    const page = await get("functions", { ...chosen, limit: 100, after: pager.after }, signal);
    rates.sample(page.items);
    scale.deepest = Math.max(1, ...page.items.map((item) => item.queued));
    table.update(page.items);
    table.sorted(chosen.sort, chosen.sort === "name" ? "ascending" : "descending");
    pager.update(page, "functions");
    table.element.hidden = page.items.length === 0;
    showNone(none, page.items.length === 0, chosen.search);
  }

  root.append(
    make(
      "div",
      { class: "head" },
      make("h1", {}, "Functions"),
      searchField("Search functions", chosen.search, (search) => change({ search })),
      make("span", { class: "push" }),
      pager.element,
    ),
    problem.element,
    none,
    table.element,
  );
  const refresh = autoRefresh(load, signal, problem.show);
}

function showNone(container, isEmpty, search) {
  container.hidden = !isEmpty;
  if (!isEmpty) return;
  container.replaceChildren(
    search
      ? empty("No functions match", `No function has “${search}” in its name.`)
      : emptyWithCommands(
          "No functions yet",
          "A function appears when a worker registers it or a client submits a job for it.",
          "worker",
        ),
  );
}

function columnsOf(rates, scale, changed) {
  const flow = (field) => (row) => rates.of(row, field);
  return [
    {
      label: "Function",
      class: "title grow",
      sort: "name",
      value: (row) => `${shown(row.name)} ${row.paused} ${row.limits}`,
      fill(cell, row) {
        const notes = [row.paused ? badge("paused", "warn") : null, limitBadge(row)];
        cell.replaceChildren(make("div", { class: "named" }, cutFunctionLink(row.name), ...notes));
        setAttribute(cell, "title", shown(row.name));
      },
    },
    {
      label: "Queued",
      class: "number",
      sort: "queued",
      value: (row) => `${row.queued}/${scale.deepest}`,
      fill: (cell, row) => fillDepth(cell, row.queued, scale.deepest),
    },
    { label: "Oldest", class: "number", sort: "oldest", value: (row) => row.oldest, fill: fillAge },
    numberColumn("Running", (row) => row.running, count, { sort: "running" }),
    numberColumn("In/s", flow("submitted"), rate, { hint: "Jobs submitted per second" }),
    numberColumn("Out/s", flow("completed"), rate, { hint: "Jobs completed per second" }),
    {
      label: "Workers",
      class: "number",
      value: (row) => `${row.workers} ${isStuck(row)}`,
      fill: fillWorkers,
    },
    numberColumn("Scheduled", (row) => row.scheduled),
    numberColumn("Dead", (row) => row.dead),
    numberColumn("Failed", (row) => row.failed, count, { sort: "failed" }),
    { label: "", class: "actions", value: (row) => row.paused, fill: (cell, row) => fillActions(cell, row, changed) },
  ];
}

/** Jobs wait, and nobody can take them. */
function isStuck(row) {
  return row.workers === 0 && row.queued > 0;
}

function fillWorkers(cell, row) {
  cell.replaceChildren(isStuck(row) ? badge("none", "bad") : count(row.workers));
  cell.classList.toggle("zero", row.workers === 0);
}

function limitBadge(row) {
  if (row.limits.every((limit) => limit === 0)) return null;
  const note = badge("limited", "scheduled");
  setAttribute(note, "title", `Limits, high / normal / low: ${limitsText(row.limits)}`);
  return note;
}

function fillDepth(cell, queued, deepest) {
  if (!cell.firstChild)
    cell.append(
      make(
        "span",
        { class: "depths" },
        make("span", { class: "depth", "aria-hidden": "true" }, make("i")),
        make("span"),
      ),
    );
  const [bar, number] = cell.firstChild.children;
  bar.firstChild.style.width = `${(queued / deepest) * 100}%`;
  setText(number, count(queued));
  cell.classList.toggle("zero", queued === 0);
}

function fillAge(cell, row) {
  if (!cell.firstChild) cell.append(make("time"));
  setTime(cell.firstChild, row.oldest, "age");
}

function fillActions(cell, row, changed) {
  const limits = action(async () => (await askForLimits(cell.current())) && changed());
  cell.replaceChildren(
    make(
      "div",
      { class: "row" },
      verbButton(pauseVerb(row), cell.current, changed),
      plainButton("limit", limits, "tiny roomy", shown(row.name)),
    ),
  );
}
