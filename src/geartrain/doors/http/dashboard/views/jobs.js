// All jobs by state, function, door, time and search: `#/jobs`; one of them: `#/jobs/<handle>`.
import { verbsFor } from "../lib/actions.js";
import { make } from "../lib/dom.js";
import { empty, searchField, segments } from "../lib/widgets.js";
import { remember } from "../lib/router.js";
import { decoded } from "../lib/text.js";
import { openJob } from "./job.js";
import { jobList } from "./joblist.js";

const STATES = [
  ["", "All"],
  ["queued", "Queued"],
  ["running", "Running"],
  ["scheduled", "Scheduled"],
  ["done", "Done"],
  ["failed", "Failed"],
  ["cancelled", "Cancelled"],
  ["dead", "Dead"],
];
const DOORS = ["gearman", "danga", "periodic", "memodb", "gearmonkey", "http"];
const COLUMNS = ["handle", "state", "function", "payload", "doors", "submitted", "took", "actions"];

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
    function: route.query.function ?? "", // stays encoded: it may be bytes that are no text
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
    remember("jobs", { ...chosen, function: encoded("function"), since: encoded("since"), until: encoded("until") });
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
      momentField("from", chosen.since, (since) => change({ since })),
      momentField("to", chosen.until, (until) => change({ until })),
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
    make("option", { value: door, selected: door === chosen.door }, door || "Any door"),
  );
  const field = make("select", { "aria-label": "Door that submitted it" }, ...options);
  field.addEventListener("change", () => change({ door: field.value }));
  return field;
}

function momentField(label, value, onChange) {
  const field = make("input", {
    type: "datetime-local",
    "aria-label": `Submitted ${label}`,
    value: decoded(value),
    max: "9999-12-31T23:59",
  });
  field.addEventListener("change", () => onChange(encodeURIComponent(field.value)));
  return make("label", { class: "field inline" }, label, field);
}

/** What a datetime-local field says, in seconds of the epoch. */
function seconds(value) {
  return value ? new Date(decoded(value)).getTime() / 1000 : "";
}

function noJobs(chosen) {
  const filtered = Object.values(chosen).some(Boolean);
  return filtered
    ? empty("No job fits this filter", "Finished jobs are kept for a while, those that clients waited for are not.")
    : empty(
        "No jobs yet",
        "Submit one here, or with any client. This one waits until a worker offers “report”.",
        "echo monday | gearman -b -f report",
      );
}
