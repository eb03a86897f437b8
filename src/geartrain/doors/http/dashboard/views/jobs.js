// The list of jobs, by state, function, protocol, time and text: `#/jobs`; one job: `#/jobs/<handle>`.
import { verbsFor } from "../lib/actions.js";
import { emptyWithCommands } from "../lib/commands.js";
import { make } from "../lib/dom.js";
import { empty, searchField, segments } from "../lib/widgets.js";
import { replaceQuery } from "../lib/router.js";
import { decoded } from "../lib/text.js";
import { openJob } from "./job.js";
import { jobList } from "./joblist.js";

const STATES = [
  ["", "All"],
  ["queued", "Queued"],
  ["running", "Running"],
  ["scheduled", "Scheduled"],
  ["blocked", "Blocked"],
  ["done", "Done"],
  ["failed", "Failed"],
  ["cancelled", "Cancelled"],
  ["dead", "Dead"],
  ["expired", "Expired"],
];
const DOORS = ["gearman", "danga", "periodic", "memodb", "gearmonkey", "http"];
const COLUMNS = ["handle", "state", "function", "payload", "doors", "server", "submitted", "took", "actions"];

export function title(route) {
  return route.parts[0] ? decoded(route.parts[0]) : "Jobs";
}

export function open(root, route, signal) {
  if (route.parts[0]) openJob(root, route.parts[0], signal);
  else openList(root, route, signal);
}

function openList(root, route, signal) {
  const chosen = {
    state: route.query.state ?? "",
    function: route.query.function ?? "", // stays encoded: it may be bytes that are not text
    search: decoded(route.query.search ?? ""),
    door: route.query.door ?? "",
    since: route.query.since ?? "",
    until: route.query.until ?? "",
  };
  const encoded = (name) => (chosen[name] ? { encoded: chosen[name] } : "");
  const filter = () => ({
    ...chosen,
    function: encoded("function"),
    since: seconds(chosen.since),
    until: seconds(chosen.until),
  });
  const list = jobList({
    label: "Jobs",
    filter,
    columns: COLUMNS,
    signal,
    verbs: () => verbsFor(chosen.state),
    empty: () => noJobs(chosen),
  });

  function change(part) {
    Object.assign(chosen, part);
    const times = { since: encoded("since"), until: encoded("until") };
    replaceQuery("jobs", { ...chosen, function: encoded("function"), ...times });
    list.changed();
  }

  root.append(
    make(
      "div",
      { class: "head" },
      make("h1", {}, "Jobs"),
      segments("State", STATES, chosen.state, (state) => change({ state })),
      list.pager,
    ),
    make(
      "div",
      { class: "filters" },
      searchField("Handle, key, function, payload", chosen.search, (search) => change({ search })),
      functionField(chosen, change),
      doorField(chosen, change),
      timeField("from", chosen.since, (since) => change({ since })),
      timeField("to", chosen.until, (until) => change({ until })),
    ),
    list.bulk,
    list.element,
  );
  list.begin();
}

function functionField(chosen, change) {
  const field = make("input", {
    placeholder: "Function",
    "aria-label": "Function",
    value: decoded(chosen.function),
    spellcheck: "false",
  });
  field.addEventListener("change", () => change({ function: encodeURIComponent(field.value) }));
  return field;
}

function doorField(chosen, change) {
  const options = ["", ...DOORS].map((door) =>
    make("option", { value: door, selected: door === chosen.door }, door || "Any protocol"),
  );
  const field = make("select", { "aria-label": "Protocol of the client" }, ...options);
  field.addEventListener("change", () => change({ door: field.value }));
  return field;
}

function timeField(label, value, onChange) {
  const field = make("input", {
    type: "datetime-local",
    "aria-label": `Submitted ${label}`,
    value: decoded(value),
    max: "9999-12-31T23:59",
  });
  field.addEventListener("change", () => onChange(encodeURIComponent(field.value)));
  return make("label", { class: "field inline" }, label, field);
}

/** Epoch seconds of a datetime-local field. */
function seconds(value) {
  return value ? new Date(decoded(value)).getTime() / 1000 : "";
}

function noJobs(chosen) {
  const filtered = Object.values(chosen).some(Boolean);
  return filtered
    ? empty("No jobs match", "Finished background jobs are listed for a limited time, foreground jobs are not.")
    : emptyWithCommands(
        "No jobs yet",
        "Submit a job here or with any client. This one is queued until there is a worker of “report”:",
        "background",
      );
}
