// The audit log: who did what, and what was refused; and the users with what they have of their quotas.
import { get } from "../lib/api.js";
import { make } from "../lib/dom.js";
import { count, size } from "../lib/format.js";
import { autoRefresh } from "../lib/refresh.js";
import { badge, empty, problemBox, searchField, segments } from "../lib/widgets.js";
import { replaceQuery } from "../lib/router.js";
import { Pager, Table } from "../lib/table.js";
import { decoded } from "../lib/text.js";
import { setTime } from "../lib/time.js";

const TONES = { ok: "done", refused: "failed", failed: "warn" };

export const title = () => "Audit log";

export function open(root, route, signal) {
  const chosen = {
    who: decoded(route.query.who ?? ""),
    verb: decoded(route.query.verb ?? ""),
    refused: route.query.refused === "true" ? "true" : "",
  };
  const problem = problemBox();
  const pager = new Pager(() => refresh());
  const table = new Table({ label: "Audit log", columns: COLUMNS, key: (row) => row.key });
  const none = make("div", { hidden: true });
  const users = usersSection();

  async function load() {
    const [page, everybody] = await Promise.all([
      get("audit", { ...chosen, limit: 100, after: pager.after }, signal),
      get("users", {}, signal),
    ]);
    table.update(withKeys(page.items));
    pager.update(page, "entries");
    table.element.hidden = page.items.length === 0;
    none.hidden = page.items.length > 0;
    if (!none.hidden) none.replaceChildren(noEntries(chosen));
    users.show(everybody);
  }

  function choose(change) {
    Object.assign(chosen, change);
    replaceQuery("audit", chosen);
    pager.reset();
    refresh();
  }

  root.append(
    make(
      "div",
      { class: "head" },
      make("h1", {}, "Audit log"),
      segments(
        "Outcome",
        [
          ["", "All"],
          ["true", "Refused"],
        ],
        chosen.refused,
        (refused) => choose({ refused }),
      ),
      searchField("User", chosen.who, (who) => choose({ who: who.trim() })),
      searchField("Verb", chosen.verb, (verb) => choose({ verb: verb.trim() })),
      make("span", { class: "push" }),
      pager.element,
    ),
    problem.element,
    none,
    table.element,
    users.element,
  );
  const refresh = autoRefresh(load, signal, problem.show, 3);
}

const COLUMNS = [
  { label: "Time", value: (row) => row.time, fill: fillTime },
  { label: "User", class: "title", value: (row) => row.who ?? "–" },
  { label: "Verb", class: "mono", value: (row) => row.verb || "–" },
  {
    label: "Outcome",
    value: outcomeOf,
    fill: (cell, row) => cell.replaceChildren(badge(outcomeOf(row), TONES[outcomeOf(row)])),
  },
  { label: "Details", class: "wrap", value: details },
  { label: "Protocol", value: (row) => row.protocol ?? "–" },
  { label: "Peer", class: "mono", value: (row) => row.peer ?? "–" },
];

function outcomeOf(row) {
  return row.outcome ?? "ok";
}

function fillTime(cell, row) {
  if (!cell.firstChild) cell.append(make("time"));
  setTime(cell.firstChild, Date.parse(row.time) / 1000);
}

/** Entries have no number: equal ones are counted from the oldest on, so that a new entry changes no other's key. */
function withKeys(items) {
  const seen = new Map();
  return items
    .toReversed()
    .map((row) => {
      const fields = `${row.time} ${row.verb} ${row.peer}`;
      seen.set(fields, (seen.get(fields) ?? 0) + 1);
      return { ...row, key: `${fields} ${seen.get(fields)}` };
    })
    .reverse();
}

function details(row) {
  if (row.left_out) return `${count(row.left_out)} entries left out: ${row.why}`;
  const words = Object.entries(row.arguments ?? {}).map(([name, value]) => argument(name, value));
  return [...words, row.why ? `(${row.why})` : ""].filter(Boolean).join(" ");
}

/** One argument. The words of a protocol's command have no names. */
function argument(name, value) {
  if (Array.isArray(value)) return name === "words" ? value.join(" ") : `${name}=${value.join(",")}`;
  if (value !== null && typeof value === "object") {
    return Object.entries(value)
      .map(([inner, one]) => argument(`${name}.${inner}`, one))
      .join(" ");
  }
  return `${name}=${value}`;
}

function noEntries(chosen) {
  return chosen.who || chosen.verb || chosen.refused
    ? empty("No entries match", "User and verb must be written exactly as in the log.")
    : empty("No entries yet", "What operators do and what is refused appears here.");
}

function usersSection() {
  const table = new Table({ label: "Users", columns: USER_COLUMNS, key: (row) => row.name });
  const element = make("section", { hidden: true }, make("h2", {}, "Users"), table.element);
  return {
    element,
    show(everybody) {
      element.hidden = everybody.length === 0;
      table.update(everybody);
    },
  };
}

const USER_COLUMNS = [
  { label: "User", class: "title", value: (row) => row.name },
  { label: "May", class: "mono wrap", value: (row) => row.may.join(" ") || "–" },
  { label: "Connections", class: "number", value: (row) => ofLimit(row.connections, row.max_connections, count) },
  { label: "Jobs", class: "number", value: (row) => ofLimit(row.queued_jobs, row.max_queued_jobs, count) },
  { label: "Bytes", class: "number", value: (row) => ofLimit(row.queued_bytes, row.max_queued_bytes, size) },
];

function ofLimit(value, limit, write) {
  return limit ? `${write(value)} / ${write(limit)}` : write(value);
}
