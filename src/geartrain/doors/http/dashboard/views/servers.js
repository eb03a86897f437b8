// The servers that share the store of this one.
import { get } from "../lib/api.js";
import { make, setAttribute } from "../lib/dom.js";
import { count, duration } from "../lib/format.js";
import { autoRefresh } from "../lib/refresh.js";
import { numberColumn, Table } from "../lib/table.js";
import { setTime } from "../lib/time.js";
import { badge, problemBox } from "../lib/widgets.js";

const TONES = { serving: "done", joining: "scheduled", left: "cancelled", fenced: "failed" };

export const title = () => "Servers";

export function open(root, route, signal) {
  const problem = problemBox();
  const table = new Table({ label: "Servers", columns: COLUMNS, key: (row) => row.node });
  root.append(make("div", { class: "head" }, make("h1", {}, "Servers")), problem.element, table.element);
  autoRefresh(async () => table.update(await get("cluster", {}, signal)), signal, problem.show);
}

const known = (value, write = count) => (value === null ? "–" : write(value));
const number = (label, of, hint) => ({ ...numberColumn(label, of, known), hint });

const COLUMNS = [
  {
    label: "Server",
    class: "title",
    value: (row) => `${row.name} ${row.answers}`,
    fill(cell, row) {
      const here = row.answers ? [" ", make("span", { class: "chip" }, "this one")] : [];
      cell.replaceChildren(row.name, ...here);
      setAttribute(cell, "title", `node ${row.node}`);
    },
  },
  {
    label: "State",
    value: (row) => `${row.state} ${row.leader} ${row.draining}`,
    fill(cell, row) {
      const marks = [row.leader && "leader", row.draining && "draining"].filter(Boolean);
      const chips = marks.map((mark) => make("span", { class: "chip" }, mark));
      cell.replaceChildren(make("span", { class: "chips" }, badge(row.state, TONES[row.state]), ...chips));
    },
  },
  number("Jobs", (row) => row.jobs, "Unfinished jobs whose home it is"),
  number("Lent", (row) => row.lent, "Of its jobs, those that workers of other servers run"),
  number("Borrowed", (row) => row.borrowed, "Jobs of other servers that its workers run"),
  number("Workers", (row) => row.workers),
  {
    label: "Lease left",
    class: "number",
    hint: "When the others may take it for dead, unless it commits before",
    value: (row) => known(row.lease_left, (seconds) => duration(Math.max(seconds, 0))),
  },
  { label: "Last commit", class: "number", value: (row) => duration(row.commit_age) },
  {
    label: "Link",
    class: "number",
    hint: "How long a message to it and back takes",
    value: (row) => known(row.round_trip, duration),
  },
  { label: "Address", class: "mono roomy", value: (row) => row.address },
  { label: "Version", class: "roomy", value: (row) => row.version },
  {
    label: "Started",
    class: "number",
    value: (row) => row.started_at,
    fill(cell, row) {
      if (!cell.firstChild) cell.append(make("time"));
      setTime(cell.firstChild, row.started_at);
    },
  },
];
