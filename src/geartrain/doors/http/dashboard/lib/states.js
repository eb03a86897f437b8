// How many jobs are in which state: their order, a bar of them, and a few words.
import { make, setAttribute, setText } from "./dom.js";
import { count } from "./format.js";

/** From what is over to what is to come, and then what went wrong. `ended`: the record is no longer kept. */
const ORDER = ["done", "ended", "running", "queued", "scheduled", "blocked", "cancelled", "expired", "failed", "dead"];

/** The state that says most about many jobs comes first. */
const MAIN = ["dead", "failed", "running", "queued", "expired", "scheduled", "blocked", "cancelled", "done", "ended"];

const OVER = ["done", "ended", "failed", "cancelled", "expired"];

/** `[state, count]` of each state that there is. */
export function inOrder(states) {
  return ORDER.filter((state) => states[state]).map((state) => [state, states[state]]);
}

/** The state whose colour stands for all of them. */
export function mainState(states) {
  return MAIN.find((state) => states[state]) ?? "blocked";
}

/** "3 done, 1 running". */
export function statesText(states) {
  return inOrder(states)
    .map(([state, number]) => `${count(number)} ${state}`)
    .join(", ");
}

/** How many have ended. */
export function overOf(states) {
  return OVER.reduce((sum, state) => sum + (states[state] ?? 0), 0);
}

/** Whole percents; 100 only if there is nothing more to do. */
export function percent(over, all) {
  return all ? Math.floor((over / all) * 100) : 0;
}

/** A bar with a part for each state, updated in place. */
export class StateBar {
  constructor() {
    this.parts = Object.fromEntries(ORDER.map((state) => [state, make("i", { "data-tone": state })]));
    this.rest = make("i");
    const parts = [...Object.values(this.parts), this.rest];
    this.element = make("span", { class: "state-bar", "aria-hidden": "true" }, ...parts);
  }

  /** `rest` is how many there are beside these, whose state is not known. */
  show(states, rest = 0) {
    this.rest.hidden = rest === 0;
    this.rest.style.flexGrow = rest;
    for (const [state, part] of Object.entries(this.parts)) {
      part.hidden = !states[state];
      part.style.flexGrow = states[state] ?? 0;
    }
  }
}

/** The states with their counts, as buttons; a click chooses a state, or all again with "". */
export class StateLegend {
  constructor(label, onChoose) {
    this.chosen = "";
    this.items = new Map();
    for (const state of ORDER) {
      const number = make("b");
      const click = () => onChoose(this.chosen === state ? "" : state);
      const button = make(
        "button",
        { type: "button", class: "quiet tiny", "data-tone": state, on: { click } },
        number,
        state,
      );
      this.items.set(state, { button, number });
    }
    const buttons = [...this.items.values()].map(({ button }) => button);
    this.element = make("div", { class: "state-legend", role: "group", "aria-label": label }, ...buttons);
  }

  show(states, chosen) {
    this.chosen = chosen;
    for (const [state, { button, number }] of this.items) {
      button.hidden = !states[state] && state !== chosen;
      setText(number, count(states[state] ?? 0));
      setAttribute(button, "aria-pressed", String(state === chosen));
    }
  }
}
