// The list of workflows: `#/workflows`; one workflow: `#/workflows/<handle>`.
import { verbsFor, WORKFLOW } from "../lib/actions.js";
import { emptyWithCommands } from "../lib/commands.js";
import { make } from "../lib/dom.js";
import { replaceQuery } from "../lib/router.js";
import { decoded } from "../lib/text.js";
import { empty, segments } from "../lib/widgets.js";
import { jobList } from "./joblist.js";
import { openWorkflow } from "./workflow.js";

/** By the states of the jobs that stand for them. */
const STATES = [
  ["", "All"],
  ["blocked", "Running"],
  ["done", "Done"],
  ["failed", "Failed"],
  ["cancelled", "Cancelled"],
];
const COLUMNS = [
  "workflow",
  "workflowHandle",
  "workflowState",
  "members",
  "workflowProgress",
  "server",
  "submitted",
  "workflowTook",
  "actions",
];

export function title(route) {
  return route.parts[0] ? decoded(route.parts[0]) : "Workflows";
}

export function open(root, route, signal) {
  if (route.parts[0]) openWorkflow(root, route, signal);
  else openList(root, route, signal);
}

function openList(root, route, signal) {
  const chosen = { state: route.query.state ?? "" };
  const list = jobList({
    label: "Workflows",
    noun: "workflows",
    filter: () => ({ ...chosen, function: WORKFLOW }),
    columns: COLUMNS,
    signal,
    verbs: () => verbsFor(chosen.state),
    empty: () => noWorkflows(chosen.state),
  });

  function change(state) {
    chosen.state = state;
    replaceQuery("workflows", chosen);
    list.changed();
  }

  root.append(
    make(
      "div",
      { class: "head" },
      make("h1", {}, "Workflows"),
      segments("State", STATES, chosen.state, change),
      list.pager,
    ),
    list.bulk,
    list.element,
  );
  list.begin();
}

function noWorkflows(state) {
  return state
    ? empty("No workflows match", "Workflows that have ended are listed for a limited time.")
    : emptyWithCommands(
        "No workflows yet",
        "A workflow is many jobs that wait for each other, submitted at once. This one has four:",
        "workflow",
      );
}
