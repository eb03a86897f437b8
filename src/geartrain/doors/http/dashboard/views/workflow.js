// One workflow: how far it is, the graph of its jobs, and the table of them.
import { jobButtons, WORKFLOW } from "../lib/actions.js";
import { get } from "../lib/api.js";
import { make } from "../lib/dom.js";
import { autoRefresh } from "../lib/refresh.js";
import { replaceQuery } from "../lib/router.js";
import { decoded, shown } from "../lib/text.js";
import { badge, jobLink, problemBox } from "../lib/widgets.js";
import { Follower } from "./follow.js";
import { WorkflowGraph } from "./workflowgraph.js";
import { WorkflowJobs } from "./workflowjobs.js";
import { WorkflowProgress } from "./workflowprogress.js";

export function openWorkflow(root, route, signal) {
  const handle = route.parts[0];
  // What the table lists: jobs in a state, and of a group, which is named by the place of its first job.
  const chosen = { state: route.query.state ?? "", group: route.query.group ?? "" };
  const problem = problemBox();
  const head = make("div", { class: "head" }, make("h1", { class: "mono" }, decoded(handle)));
  const progress = new WorkflowProgress((state) => choose({ state }));
  const graph = new WorkflowGraph((group) => choose({ group }), changed, signal);
  const jobs = new WorkflowJobs(changed, () => choose({ group: "" }));
  const parts = make("div", { class: "workflow", hidden: true }, progress.element, graph.element, jobs.element);
  const follower = new Follower(handle, changed, signal);
  let shownAs = "";

  async function load() {
    const query = jobs.query(chosen);
    const workflow = await get(`workflows/${handle}`, query, signal);
    if (JSON.stringify(query) !== JSON.stringify(jobs.query(chosen))) return; // it is loaded again
    if (shownAs !== `${workflow.state} ${workflow.name}`) showHead(head, workflow, afterVerb);
    shownAs = `${workflow.state} ${workflow.name}`;
    parts.hidden = false;
    progress.show(workflow, chosen.state);
    graph.show(workflow, chosen.group);
    jobs.show(workflow, chosen);
    follower.follow({ background: true, state: workflow.state });
  }

  function choose(part) {
    Object.assign(chosen, part);
    replaceQuery(`workflows/${handle}`, chosen);
    jobs.pager.reset();
    refresh();
  }

  function afterVerb(verb) {
    if (verb === "delete") location.hash = "#/workflows";
    else refresh();
  }

  function changed() {
    refresh();
  }

  root.append(head, problem.element, parts);
  const refresh = autoRefresh(load, signal, problem.show);
}

function showHead(head, workflow, afterVerb) {
  const name = workflow.name || shown(workflow.handle);
  const job = { handle: workflow.handle, function: WORKFLOW, workflow: workflow.name };
  const state = workflow.state === "running" ? "blocked" : workflow.state; // as a job, it waits for the others
  document.title = `${name} · Geartrain`;
  head.replaceChildren(
    make("h1", { title: name }, name),
    badge(workflow.state),
    make("span", { class: "soft small" }, jobLink(workflow.handle)),
    make("span", { class: "push" }),
    make("div", { class: "row" }, ...jobButtons(state, () => job, afterVerb, "")),
  );
}
