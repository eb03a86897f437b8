// Schedules: the server submits their jobs.
import { plainButton, send, verbButton } from "../lib/actions.js";
import { get } from "../lib/api.js";
import { field, form, input, select } from "../lib/dialog.js";
import { make } from "../lib/dom.js";
import { NONE } from "../lib/format.js";
import { autoRefresh } from "../lib/refresh.js";
import { action, notice } from "../lib/notice.js";
import { badge, empty, functionLink, jobLink, problemBox } from "../lib/widgets.js";
import { Table } from "../lib/table.js";
import { shown } from "../lib/text.js";
import { setTime } from "../lib/time.js";

export const title = () => "Schedules";

export function open(root, route, signal) {
  const problem = problemBox();
  const table = new Table({ label: "Schedules", columns: columns(() => refresh()), key: (row) => row.name });
  const none = empty(
    "No schedules yet",
    "A schedule submits a job at the times of a cron expression: minute, hour, day of month, month, day of week. " +
      "“*/5 * * * *” is every five minutes, “@hourly” every hour, “@every 15s” every 15 seconds.",
  );
  none.hidden = true;

  async function load() {
    const answer = await get("schedules", {}, signal);
    const rows = Array.isArray(answer) ? answer : answer.items;
    table.update(rows);
    table.element.hidden = rows.length === 0;
    none.hidden = rows.length > 0;
  }

  const add = make(
    "button",
    {
      type: "button",
      "data-needs": "admin",
      class: "primary",
      on: { click: action(async () => (await edit(null)) && refresh()) },
    },
    "New schedule",
  );
  root.append(
    make("div", { class: "head" }, make("h1", {}, "Schedules"), make("span", { class: "push" }), add),
    problem.element,
    none,
    table.element,
  );
  const refresh = autoRefresh(load, signal, problem.show);
}

function columns(changed) {
  return [
    {
      label: "Schedule",
      class: "title",
      value: (row) => `${row.name} ${row.paused}`,
      fill: (cell, row) => cell.replaceChildren(row.name, ...(row.paused ? [" ", badge("paused", "warn")] : [])),
    },
    { label: "Cron expression", class: "mono", value: (row) => row.expression },
    { label: "Time zone", value: (row) => row.timezone },
    {
      label: "Function",
      value: (row) => shown(row.function),
      fill: (cell, row) => cell.replaceChildren(functionLink(row.function)),
    },
    { label: "Next run", value: (row) => row.next_at, fill: (cell, row) => fillTime(cell, row.next_at, "until") },
    { label: "Last run", value: (row) => `${row.last_at} ${shown(row.last_handle)}`, fill: fillLast },
    { label: "", class: "actions", value: (row) => row.paused, fill: (cell, row) => fillActions(cell, row, changed) },
  ];
}

function fillTime(cell, at, style) {
  if (!cell.firstChild) cell.append(make("time"));
  setTime(cell.firstChild, at, style);
}

function fillLast(cell, row) {
  if (row.last_at === null) cell.replaceChildren(NONE);
  else
    cell.replaceChildren(
      setTime(make("time"), row.last_at),
      " ",
      shown(row.last_handle) ? jobLink(row.last_handle) : "",
    );
}

function fillActions(cell, row, changed) {
  const button = (name) => verbButton(name, cell.current, changed);
  cell.replaceChildren(
    make(
      "div",
      { class: "row" },
      button("cron_run"),
      button(row.paused ? "cron_resume" : "cron_pause"),
      plainButton("cron_set", action(async () => (await edit(cell.current())) && changed())),
      button("cron_remove"),
    ),
  );
}

/** The form for a new schedule, or to change one. */
function edit(row) {
  const payload = make("textarea", { name: "payload", spellcheck: "false" });
  payload.value = row === null ? "" : shown(row.payload);
  const unique = make("input", { type: "checkbox", name: "unique", checked: row?.unique ?? true });
  const fields = [
    field(
      "Name",
      input("name", {
        required: true,
        value: row?.name,
        readonly: row !== null,
        autofocus: row === null,
        placeholder: "nightly-report",
      }),
    ),
    make(
      "div",
      { class: "columns" },
      field(
        "Cron expression",
        input("expression", { required: true, value: row?.expression, placeholder: "0 3 * * *" }),
        "minute hour day month weekday; six fields begin with seconds; @hourly; @every 15s",
      ),
      field("Time zone", input("timezone", { value: row?.timezone ?? "UTC" })),
    ),
    make(
      "div",
      { class: "columns" },
      field(
        "Function",
        input("function", { required: true, value: row === null ? "" : shown(row.function), placeholder: "report" }),
      ),
      field("Priority", select("priority", ["high", "normal", "low"], row?.priority ?? "normal")),
    ),
    field("Payload", payload),
    field(
      "Missed runs",
      select("missed", ["skip", "once", "all"], row?.missed ?? "once"),
      "while the server was down: skip them, run once instead of them, or run all (the last 100)",
    ),
    field(
      "Expires",
      input("expires", { type: "number", min: "0", step: "any", value: row?.expires || "", placeholder: "never" }),
      "seconds that a job may wait for a worker",
    ),
    make("label", { class: "field inline" }, unique, "Skip a run while the job of the previous run has not ended"),
  ];
  const save = async (data) => {
    const name = data.get("name");
    await send("cron_set", name, {
      expression: data.get("expression"),
      timezone: data.get("timezone"),
      function: data.get("function"),
      payload: data.get("payload"),
      priority: data.get("priority"),
      unique: data.get("unique") !== null,
      missed: data.get("missed"),
      expires: Number(data.get("expires")) || 0,
    });
    notice(`Schedule ${name} saved.`);
    return true;
  };
  return form(row === null ? "New schedule" : `Schedule ${row.name}`, fields, save);
}
