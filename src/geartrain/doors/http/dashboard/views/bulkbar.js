// Buttons for the selected jobs of a list, or for all that match its filter, and the progress of what they do.
import { may } from "../lib/access.js";
import { performOnAll, performOnEach, plainButton, sumUp, verbsFor } from "../lib/actions.js";
import { confirm } from "../lib/dialog.js";
import { make, setText } from "../lib/dom.js";
import { count, dateTime, plural } from "../lib/format.js";
import { notice, showError } from "../lib/notice.js";
import { shown, textOf } from "../lib/text.js";
import { VERBS } from "../lib/verbs.js";

export class BulkBar {
  /** `changed` is called after an action. */
  constructor(changed, signal) {
    this.changed = changed;
    this.running = null;
    this.about = make("span", { class: "small" });
    this.buttons = make("div", { class: "row" });
    this.progress = make("span", { class: "soft small", role: "status" });
    this.stop = make(
      "button",
      { type: "button", class: "tiny", hidden: true, on: { click: () => this.running?.abort() } },
      "Stop",
    );
    this.element = make("div", { class: "bulk", hidden: true }, this.about, this.buttons, this.progress, this.stop);
    signal.addEventListener("abort", () => this.running?.abort());
  }

  /** No selection: buttons for everything that matches `filter`, of which there are `amount`. */
  offerAll(names, filter, amount) {
    setText(this.about, "");
    const click = (name) => () => this.askForAll(name, filter(), amount);
    const allowed = names.filter((name) => may(VERBS[name].needs, functionOf(filter())));
    this.#show(allowed.map((name) => this.#button(name, VERBS[name].label_all, click(name))));
  }

  /** Buttons for the selected jobs; `more` are other buttons, for the selection itself. */
  offerSelected(jobs, more) {
    const allows = (name, job) => may(VERBS[name].needs, shown(job.function));
    const names = new Set(jobs.flatMap((job) => verbsFor(job.state).filter((name) => allows(name, job))));
    setText(this.about, `${plural(jobs.length, "job")} selected`);
    const buttons = [...names].map((name) => {
      const fitting = jobs.filter((job) => VERBS[name].states.includes(job.state) && allows(name, job));
      const label = fitting.length < jobs.length ? `${VERBS[name].label} ${count(fitting.length)}` : VERBS[name].label;
      return this.#button(name, label, () => this.#askForSelected(name, fitting));
    });
    this.#show([...buttons, ...more]);
  }

  /** Asks, and applies the verb to every job that matches the filter. `what` replaces the description of the filter. */
  async askForAll(name, filter, amount, what = null) {
    const given = plainFilter(filter);
    const { danger, label_all: label } = VERBS[name];
    const confirmed = await confirm(what === null ? `${label} that match the filter?` : `${label} of this reason?`, {
      detail: `${amount} (${what ?? describe(given)}).`,
      yes: label,
      danger,
    });
    if (confirmed) await this.#run(name, (progress, signal) => performOnAll(name, given, progress, signal));
  }

  async #askForSelected(name, jobs) {
    const { danger, label, detail } = VERBS[name];
    const confirmed = await confirm(`${label} ${plural(jobs.length, "job")}?`, { detail, yes: label, danger });
    const handles = jobs.map((job) => job.handle);
    if (confirmed) await this.#run(name, (progress, signal) => performOnEach(name, handles, progress, signal));
  }

  async #run(name, work) {
    if (this.running !== null) return;
    this.running = new AbortController();
    this.element.hidden = this.stop.hidden = false;
    try {
      const sum = await work((done) => setText(this.progress, `${plural(done, "job")} so far…`), this.running.signal);
      notice(sumUp(name, sum));
    } catch (error) {
      showError(error);
    }
    this.running = null;
    this.stop.hidden = true;
    setText(this.progress, "");
    this.changed();
  }

  #button(name, label, click) {
    const button = plainButton(name, click, "");
    setText(button, label);
    return button;
  }

  #show(buttons) {
    this.element.hidden = buttons.length === 0 && this.running === null;
    // The same buttons stay in place, so that the focus does.
    const signature = buttons.map((button) => button.textContent).join();
    if (signature !== this.buttons.dataset.shown) this.buttons.replaceChildren(...buttons);
    else buttons.forEach((button, index) => this.buttons.children[index].replaceWith(button));
    this.buttons.dataset.shown = signature;
  }
}

/** The function that a filter is for; empty, for which a right to all functions is needed, if it is for all. */
export function functionOf(filter) {
  return shown(plainFilter(filter).function ?? "");
}

/** The filter with values for JSON, without those that are not set. */
function plainFilter(filter) {
  return Object.fromEntries(
    Object.entries(filter)
      .filter(([, value]) => value !== "" && value !== null && value !== undefined)
      .map(([name, value]) => [name, value.encoded === undefined ? value : textOf(value.encoded)]),
  );
}

function describe(filter) {
  const parts = Object.entries(filter).map(
    ([name, value]) => `${name} ${name === "since" || name === "until" ? dateTime(value) : shown(value)}`,
  );
  return parts.length ? parts.join(", ") : "no filter: every job";
}
