// A list of jobs that match a filter, with pages, and with buttons that act on all of them.
import { get } from "../lib/api.js";
import { performOnAll, plainButton, sumUp } from "../lib/actions.js";
import { confirm } from "../lib/dialog.js";
import { make, say } from "../lib/dom.js";
import { count, moment, plural } from "../lib/format.js";
import { keepFresh } from "../lib/refresh.js";
import { complain, notice } from "../lib/notice.js";
import { problemBox } from "../lib/widgets.js";
import { Pager } from "../lib/table.js";
import { shown, textOf } from "../lib/text.js";
import { VERBS } from "../lib/verbs.js";
import { jobColumns, jobTable } from "./jobtable.js";

const PAGE = 100;

/**
 * `filter()` gives the API's parameters, `columns` the names of the columns, `empty()` what to show for no jobs,
 * and `verbs()` the names of the verbs for all jobs that match. Returns elements and `changed()`, for a new filter.
 */
export function jobList({ label, filter, columns, empty, verbs, signal }) {
  const problem = problemBox();
  const pager = new Pager(() => refresh());
  const table = jobTable(
    label,
    jobColumns(columns, () => refresh()),
  );
  const none = make("div", { hidden: true });
  const waiting = make("span", { class: "soft small", hidden: true }, "held while you point at it");
  const bulk = new BulkBar(filter, () => refresh(), signal);

  // A list that moves away under the pointer cannot be used.
  const held = () => table.element.matches(":hover") || table.element.contains(document.activeElement);

  async function load(wanted) {
    waiting.hidden = !held();
    if (!wanted && held()) return;
    const page = await get("jobs", { ...filter(), limit: PAGE, after: pager.after }, signal);
    table.update(page.items);
    pager.update(page, "jobs");
    bulk.offer(page.items.length ? verbs() : [], page);
    table.element.hidden = page.items.length === 0;
    none.hidden = page.items.length > 0;
    if (!none.hidden) none.replaceChildren(empty());
  }

  const list = make("div", { class: "list" }, problem.element, none, table.element);
  let refresh = () => {};
  return {
    element: list,
    bulk: bulk.element,
    pager: make("div", { class: "row push" }, waiting, pager.element),
    begin() {
      refresh = keepFresh(load, signal, problem.show);
    },
    changed() {
      pager.reset();
      refresh();
    },
  };
}

/** Buttons for all that fit the filter, and how far a deed has come. */
class BulkBar {
  constructor(filter, changed, signal) {
    this.filter = filter;
    this.changed = changed;
    this.signal = signal;
    this.offered = "";
    this.amount = "";
    this.running = null;
    this.buttons = make("div", { class: "row" });
    this.progress = make("span", { class: "soft small", role: "status" });
    this.stop = make(
      "button",
      { type: "button", class: "tiny", hidden: true, on: { click: () => this.running?.abort() } },
      "Stop",
    );
    this.element = make("div", { class: "bulk", hidden: true }, this.buttons, this.progress, this.stop);
  }

  offer(names, page) {
    this.amount =
      page.total === null || page.total === undefined
        ? page.after
          ? `more than ${count(page.items.length)} jobs`
          : plural(page.items.length, "job")
        : plural(page.total, "job");
    if (names.join() === this.offered) return;
    this.offered = names.join();
    this.element.hidden = names.length === 0;
    this.buttons.replaceChildren(...names.map((name) => this.#button(name)));
  }

  #button(name) {
    const button = plainButton(name, () => this.#ask(name), "");
    say(button, VERBS[name].label_all);
    return button;
  }

  async #ask(name) {
    const filter = Object.fromEntries(
      Object.entries(this.filter()).filter(([, value]) => value !== "" && value !== null),
    );
    const { danger, label_all: label } = VERBS[name];
    const sure = await confirm(`${label} that match the filter?`, {
      detail: `That is ${this.amount}: ${describe(filter)}.`,
      yes: label,
      danger,
    });
    if (sure && this.running === null) await this.#run(name, plainFilter(filter));
  }

  async #run(name, filter) {
    this.running = new AbortController();
    this.signal.addEventListener("abort", () => this.running?.abort());
    this.stop.hidden = false;
    try {
      const sum = await performOnAll(
        name,
        filter,
        (done) => say(this.progress, `${plural(done, "job")} so far…`),
        this.running.signal,
      );
      notice(sumUp(name, sum));
    } catch (error) {
      complain(error);
    }
    this.running = null;
    this.stop.hidden = true;
    say(this.progress, "");
    this.changed();
  }
}

/** The filter's values as JSON has them. */
function plainFilter(filter) {
  return Object.fromEntries(
    Object.entries(filter).map(([name, value]) => [name, value.encoded === undefined ? value : textOf(value.encoded)]),
  );
}

function describe(filter) {
  const parts = Object.entries(plainFilter(filter)).map(
    ([name, value]) => `${name} ${name === "since" || name === "until" ? moment(value) : shown(value)}`,
  );
  return parts.length ? parts.join(", ") : "every job there is";
}
