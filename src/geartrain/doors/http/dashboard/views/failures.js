// Failed and dead jobs in groups of equal reasons: `#/failures`; the jobs of one group: `#/failures?reason=...`.
import { get } from "../lib/api.js";
import { plainButton } from "../lib/actions.js";
import { make, setAttribute } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { autoRefresh } from "../lib/refresh.js";
import { link, replaceQuery } from "../lib/router.js";
import { numberColumn, Table } from "../lib/table.js";
import { decoded, shown } from "../lib/text.js";
import { setTime } from "../lib/time.js";
import { VERBS } from "../lib/verbs.js";
import { empty, functionLink, problemBox, searchField, segments } from "../lib/widgets.js";
import { BulkBar, functionOf } from "./bulkbar.js";
import { openGroup } from "./failuregroup.js";

const STATES = [
  ["", "Failed and dead"],
  ["failed", "Failed"],
  ["dead", "Dead"],
];
const FUNCTIONS_SHOWN = 2;

export const title = () => "Failed and dead jobs";

export function open(root, route, signal) {
  if (route.query.reason === undefined) openGroups(root, route, signal);
  else openGroup(root, route, signal);
}

function openGroups(root, route, signal) {
  const chosen = {
    state: route.query.state ?? "",
    search: decoded(route.query.search ?? ""),
    function: route.query.function ?? "", // stays encoded: it may be bytes that are not text
  };
  const filter = () => ({ ...chosen, function: chosen.function ? { encoded: chosen.function } : "" });
  const problem = problemBox();
  const bulk = new BulkBar(() => refresh(), signal);
  const table = new Table({ label: "Reasons", columns: columnsOf(filter, bulk), key: (group) => group.reason });
  const none = make("div", { hidden: true });
  const scope = make("p", { class: "soft small" });

  async function load(requested) {
    // Rows must not move while the pointer or the focus is on them.
    if (!requested && (table.element.matches(":hover") || table.element.contains(document.activeElement))) return;
    const failures = await get("failures", filter(), signal);
    table.update(failures.groups);
    scope.textContent = scopeOf(failures);
    table.element.hidden = scope.hidden = failures.groups.length === 0;
    none.hidden = failures.groups.length > 0;
    if (!none.hidden) none.replaceChildren(noFailures(chosen));
  }

  function change(part) {
    Object.assign(chosen, part);
    replaceQuery("failures", filter());
    refresh();
  }

  root.append(
    make(
      "div",
      { class: "head" },
      make("h1", {}, "Failed and dead jobs"),
      segments("State", STATES, chosen.state, (state) => change({ state })),
      searchField("Search reasons and jobs", chosen.search, (search) => change({ search })),
      functionField(chosen.function, (name) => change({ function: name })),
    ),
    bulk.element,
    problem.element,
    none,
    table.element,
    scope,
  );
  const refresh = autoRefresh(load, signal, problem.show);
}

function columnsOf(filter, bulk) {
  return [
    {
      label: "Reason",
      class: "title grow clamp",
      value: (group) => `${group.reason} ${group.example}`,
      fill: (cell, group) => fillReason(cell, group, filter()),
    },
    numberColumn("Failed", (group) => group.failed),
    numberColumn("Dead", (group) => group.dead),
    {
      label: "Functions",
      class: "short",
      value: (group) => group.functions.map(shown).join(),
      fill: fillFunctions,
    },
    { label: "First", value: (group) => group.first_at, fill: (cell, group) => fillTime(cell, group.first_at) },
    { label: "Last", value: (group) => group.last_at, fill: (cell, group) => fillTime(cell, group.last_at) },
    {
      label: "",
      class: "actions",
      value: (group) => `${group.failed > 0} ${group.dead > 0}`,
      fill: (cell, group) => fillActions(cell, group, filter, bulk),
    },
  ];
}

function fillReason(cell, group, filter) {
  const href = link("failures", { ...filter, reason: group.reason || "" });
  const anchor = make("a", { href: group.reason ? href : `${href}${href.includes("?") ? "&" : "?"}reason=` });
  anchor.append(group.reason || "no reason given");
  cell.replaceChildren(anchor);
  setAttribute(cell, "title", `For example: ${group.example || "no reason given"}`);
}

function fillFunctions(cell, group) {
  const names = group.functions.slice(0, FUNCTIONS_SHOWN);
  const links = names.flatMap((name, index) => [index ? ", " : "", functionLink(name)]);
  const hidden = group.function_count - names.length;
  cell.replaceChildren(make("span", {}, ...links, hidden > 0 ? ` +${hidden}` : ""));
  setAttribute(cell, "title", group.functions.map(shown).join(", "));
}

function fillTime(cell, at) {
  if (!cell.firstChild) cell.append(make("time"));
  setTime(cell.firstChild, at);
}

function fillActions(cell, group, filter, bulk) {
  const states = ["failed", "dead"].filter((state) => group[state] > 0);
  const names = ["retry", "delete"].filter((name) => states.some((state) => VERBS[name].states.includes(state)));
  const click = (name) => () => {
    const { failed, dead, reason, example } = cell.current();
    bulk.askForAll(name, { ...filter(), reason }, plural(failed + dead, "job"), example);
  };
  const buttons = names.map((name) => plainButton(name, click(name), "tiny", functionOf(filter())));
  cell.replaceChildren(make("div", { class: "row" }, ...buttons));
}

function functionField(value, onChange) {
  const field = make("input", {
    placeholder: "Function",
    "aria-label": "Function",
    value: decoded(value),
    spellcheck: "false",
  });
  field.addEventListener("change", () => onChange(encodeURIComponent(field.value)));
  return field;
}

function scopeOf({ groups, scanned, others, more }) {
  const parts = [`${plural(scanned, "job")} in ${plural(groups.length, "group")}`];
  if (others) parts.push(`${plural(others, "job")} of other reasons are not listed`);
  if (more) parts.push("older jobs are not counted: a filter narrows the list");
  return `${parts.join("; ")}. Numbers, ids, quoted values and addresses in reasons are ignored.`;
}

function noFailures(chosen) {
  if (chosen.search || chosen.function)
    return empty("No jobs match", "The search looks for text in the handle, unique key, function, payload and reason.");
  return empty(
    chosen.state ? `No ${chosen.state} jobs` : "No failed or dead jobs",
    "A job fails when its worker says so, and is dead after too many failed attempts. Both are listed here by their " +
      "reasons, and can be retried or deleted.",
  );
}
