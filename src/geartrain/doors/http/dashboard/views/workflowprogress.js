// How far a workflow is: a bar with the states of its jobs, times, and what stands in its way.
import { make, setText } from "../lib/dom.js";
import { count, dateTime, duration, plural } from "../lib/format.js";
import { overOf, percent, StateBar, StateLegend, statesText } from "../lib/states.js";
import { setTime } from "../lib/time.js";

export class WorkflowProgress {
  constructor(onState) {
    this.bar = new StateBar();
    this.legend = new StateLegend("List only jobs in this state", onState);
    this.percent = make("span", { class: "workflow-percent" });
    this.amount = make("span", { class: "soft" });
    this.took = make("span");
    this.age = make("time");
    this.submitted = make("time");
    this.note = make("p", { class: "workflow-note", role: "status", hidden: true });
    const times = make("span", { class: "soft small push" }, this.took, this.age, " · submitted ", this.submitted);
    this.element = make(
      "section",
      { class: "card workflow-progress", "aria-label": "Progress" },
      make("div", { class: "row" }, this.percent, this.amount, times),
      this.bar.element,
      this.legend.element,
      this.note,
    );
  }

  show(workflow, chosen) {
    const { count: all, states } = workflow;
    const over = overOf(states);
    setText(this.percent, `${percent(over, all)}%`);
    setText(this.amount, `${count(over)} of ${plural(all, "job")} ${over === 1 ? "has" : "have"} ended`);
    this.bar.show(states);
    this.bar.element.title = statesText(states);
    this.legend.show(states, chosen);
    this.#showTimes(workflow);
    this.#showNote(workflow);
  }

  #showTimes({ submitted_at: submitted, finished_at: finished }) {
    this.age.hidden = finished !== null;
    setText(this.took, finished === null ? "running for " : `took ${duration(finished - submitted)}`);
    setTime(this.age, submitted, "age");
    setTime(this.submitted, submitted);
    this.took.title = finished === null ? "" : `ended ${dateTime(finished)}`;
  }

  #showNote(workflow) {
    const [tone, text] = noteOf(workflow);
    this.note.hidden = text === "";
    this.note.dataset.tone = tone;
    setText(this.note, text);
  }
}

/** What the reader should know or do: a tone and a text. */
function noteOf({ state, states, reason }) {
  if (state === "failed") return [state, `Failed: ${reason}. Retry runs again what ended badly, and goes on from there.`];
  if (state !== "running") return [state, state === "done" ? "" : reason];
  if (states.dead) return ["dead", `${plural(states.dead, "job")} gave up. Retry dead jobs, and the workflow goes on.`];
  if (!reason) return ["", ""];
  return ["failed", `${reason[0].toUpperCase()}${reason.slice(1)}: the workflow fails when all have ended.`];
}
