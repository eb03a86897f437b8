// The table of the jobs of a workflow: all of them, those in a state, those of a group.
import { verbButton, verbsFor } from "../lib/actions.js";
import { make, setText } from "../lib/dom.js";
import { count, plural } from "../lib/format.js";
import { Pager, Table } from "../lib/table.js";
import { shown } from "../lib/text.js";
import { badge, functionLink, jobLink } from "../lib/widgets.js";

const PAGE = 100;
const RANGES_SHOWN = 4;

export class WorkflowJobs {
  /** `changed` is called after an action on a job and for another page, `allGroups` to list all jobs again. */
  constructor(changed, allGroups) {
    this.pager = new Pager(changed);
    this.table = new Table({ label: "Jobs of the workflow", columns: columnsOf(changed), key: (job) => job.place });
    this.group = make("button", { type: "button", class: "tiny", title: "List all jobs", on: { click: allGroups } });
    this.none = make("p", { class: "soft card", hidden: true }, "No job is in this state.");
    this.element = make(
      "section",
      { class: "workflow-jobs", "aria-label": "Jobs" },
      make("div", { class: "head" }, make("h2", {}, "Jobs"), this.group, this.pager.element),
      this.none,
      this.table.element,
    );
  }

  query({ state, group }) {
    return { state, limit: PAGE, after: this.pager.after || group };
  }

  show(workflow, chosen) {
    const group = workflow.groups.find(({ first }) => String(first) === chosen.group);
    const { items, after } = withinGroup(workflow, group);
    const among = group ?? workflow;
    const total = chosen.state ? (among.states[chosen.state] ?? 0) : among.count;
    this.group.hidden = group === undefined;
    if (group) setText(this.group, `${shown(group.function)} × ${count(group.count)} ✕`);
    this.table.update(items);
    this.table.element.hidden = items.length === 0;
    this.none.hidden = items.length > 0;
    this.pager.update({ items, after, text: `${count(items.length)} of ${plural(total, "job")}` });
  }
}

/** A page of the workflow may go on behind the group: its jobs follow each other. */
function withinGroup(workflow, group) {
  if (group === undefined) return { items: workflow.jobs, after: workflow.after };
  const end = group.first + group.count;
  const items = workflow.jobs.filter(({ place }) => place < end);
  return { items, after: workflow.after && Number(workflow.after) < end ? workflow.after : "" };
}

function columnsOf(changed) {
  return [
    {
      label: "Job",
      class: "title",
      value: (job) => shown(job.handle),
      fill: (cell, job) => cell.replaceChildren(jobLink(job.handle)),
    },
    { label: "State", value: (job) => job.state, fill: (cell, job) => cell.replaceChildren(badge(job.state)) },
    {
      label: "Function",
      class: "short",
      value: (job) => shown(job.function),
      fill: (cell, job) => cell.replaceChildren(functionLink(job.function)),
    },
    { label: "Place", class: "number", value: (job) => count(job.place), hint: "Its number in the workflow, from 0" },
    { label: "Runs after", class: "grow", value: afterText, title: true },
    {
      label: "",
      class: "actions",
      value: (job) => job.state,
      fill: (cell, job) => {
        cell.replaceChildren(make("div", { class: "row" }, ...buttonsFor(job.state, cell.current, changed)));
      },
    },
  ];
}

/** "0–99, 104; whatever they come to". */
function afterText({ after, on_failure: onFailure }) {
  const ranges = after.slice(0, RANGES_SHOWN).map((range) => [...new Set(range)].map(count).join("–"));
  if (after.length > RANGES_SHOWN) ranges.push("…");
  const anyway = after.length && onFailure === "run" ? ", whatever they come to" : "";
  return ranges.join(", ") + anyway;
}

/** A dead job is what a workflow waits for in vain; all else is done with the workflow as a whole. */
export function buttonsFor(state, job, changed) {
  const names = verbsFor(state).filter((name) => state === "dead" && name === "retry");
  return names.map((name) => verbButton(name, job, changed));
}
