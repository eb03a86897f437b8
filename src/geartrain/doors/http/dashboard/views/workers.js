// The connected workers, their functions and current jobs.
import { get } from "../lib/api.js";
import { emptyWithCommands } from "../lib/commands.js";
import { make, setAttribute, setText } from "../lib/dom.js";
import { autoRefresh } from "../lib/refresh.js";
import { badge, empty, functionLink, jobLink, problemBox, searchField } from "../lib/widgets.js";
import { replaceQuery } from "../lib/router.js";
import { Pager, Table } from "../lib/table.js";
import { decoded, shown } from "../lib/text.js";
import { setTime } from "../lib/time.js";

const FUNCTIONS_SHOWN = 3;

export const title = () => "Workers";

export function open(root, route, signal) {
  const chosen = { search: decoded(route.query.search ?? "") };
  const problem = problemBox();
  const pager = new Pager(() => refresh());
  const table = new Table({ label: "Workers", columns: COLUMNS, key: (row) => `${row.server} ${row.id}` });
  const none = make("div", { hidden: true });

  async function load() {
    const page = await get("workers", { ...chosen, limit: 100, after: pager.after }, signal);
    table.update(page.items);
    pager.update(page, "workers");
    table.element.hidden = page.items.length === 0;
    none.hidden = page.items.length > 0;
    if (!none.hidden) none.replaceChildren(noWorkers(chosen.search));
  }

  const search = searchField("Search workers", chosen.search, (text) => {
    chosen.search = text;
    replaceQuery("workers", chosen);
    pager.reset();
    refresh();
  });
  root.append(
    make("div", { class: "head" }, make("h1", {}, "Workers"), search, make("span", { class: "push" }), pager.element),
    problem.element,
    none,
    table.element,
  );
  const refresh = autoRefresh(load, signal, problem.show);
}

const COLUMNS = [
  {
    label: "Worker",
    class: "title",
    value: (row) => shown(row.name) || `worker ${row.id}`,
    fill: fillName,
  },
  {
    label: "Protocol",
    value: (row) => row.door,
    fill: (cell, row) => cell.replaceChildren(make("span", { class: "chip" }, row.door)),
  },
  {
    label: "State",
    value: stateOf,
    fill: (cell, row) => cell.replaceChildren(badge(stateOf(row), row.running.length ? "running" : "cancelled")),
  },
  { label: "Current job", value: (row) => row.running.map(shown).join(), fill: fillJobs },
  {
    label: "Running for",
    class: "number",
    value: (row) => row.running_since,
    fill: (cell, row) => fillAge(cell, row.running_since),
  },
  {
    label: "Functions",
    class: "wrap",
    value: (row) => `${row.function_count} ${row.functions.slice(0, FUNCTIONS_SHOWN).map(shown).join()}`,
    fill: fillFunctions,
  },
  { label: "Server", class: "cluster-only", value: (row) => row.server },
  { label: "Peer", class: "mono roomy", value: (row) => row.peer },
  { label: "Connected for", class: "number", value: (row) => row.since, fill: (cell, row) => fillAge(cell, row.since) },
];

function stateOf(row) {
  if (row.running.length > 1) return `${row.running.length} jobs`;
  if (row.running.length === 1) return "running";
  return row.idle ? "idle" : "not waiting";
}

function fillName(cell, row) {
  setText(cell, shown(row.name) || `worker ${row.id}`);
  setAttribute(cell, "title", row.peer);
}

function fillJobs(cell, row) {
  const more = row.running.length > 1 ? ` +${row.running.length - 1}` : "";
  cell.replaceChildren(...(row.running.length ? [jobLink(row.running[0]), more] : []));
  cell.classList.toggle("blank", row.running.length === 0);
}

function fillAge(cell, at) {
  if (!cell.firstChild) cell.append(make("time"));
  setTime(cell.firstChild, at, "age");
  cell.classList.toggle("blank", at === null);
}

function fillFunctions(cell, row) {
  const chips = row.functions.slice(0, FUNCTIONS_SHOWN).map((name) => {
    const chip = functionLink(name);
    chip.className = "chip";
    return chip;
  });
  const hidden = row.function_count - chips.length;
  cell.replaceChildren(
    make("span", { class: "chips" }, ...chips, hidden > 0 ? make("span", { class: "soft small" }, `+${hidden}`) : null),
  );
  setAttribute(cell, "title", row.functions.map(shown).join(", "));
}

function noWorkers(search) {
  return search
    ? empty("No workers match", `No name, address or function contains “${search}”.`)
    : emptyWithCommands(
        "No workers are connected",
        "A worker of any protocol appears here as soon as it registers a function.",
        "worker",
      );
}
