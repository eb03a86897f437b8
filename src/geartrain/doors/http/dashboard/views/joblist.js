// A list of jobs that match a filter, with pages and with buttons for all of them.
import { get } from "../lib/api.js";
import { performOnAll, plainButton, sumUp } from "../lib/actions.js";
import { confirm } from "../lib/dialog.js";
import { make, setText } from "../lib/dom.js";
import { count, dateTime, plural } from "../lib/format.js";
import { autoRefresh } from "../lib/refresh.js";
import { showError, notice } from "../lib/notice.js";
import { problemBox } from "../lib/widgets.js";
import { Pager } from "../lib/table.js";
import { shown, textOf } from "../lib/text.js";
import { VERBS } from "../lib/verbs.js";
import { jobColumns, jobTable } from "./jobtable.js";

const PAGE = 100;

/**
 * `filter()` returns the API's parameters, `columns` are names of columns, `empty()` returns the empty state, and
 * `verbs()` the names of the verbs for all jobs that match. Returns elements and `changed()`, for a new filter.
 */
export function jobList({ label, filter, columns, empty, verbs, signal }) {
  const problem = problemBox();
  const pager = new Pager(() => refresh());
  const table = jobTable(
    label,
    jobColumns(columns, () => refresh()),
  );
  const none = make("div", { hidden: true });
  const paused = make("span", { class: "soft small", hidden: true }, "refresh paused");
  const bulk = new BulkBar(filter, () => refresh(), signal);

  // Rows must not move while the pointer or the focus is on them.
  const inUse = () => table.element.matches(":hover") || table.element.contains(document.activeElement);

  async function load(requested) {
    paused.hidden = !inUse();
    if (!requested && inUse()) return;
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
    pager: make("div", { class: "row push" }, paused, pager.element),
    begin() {
      refresh = autoRefresh(load, signal, problem.show);
    },
    changed() {
      pager.reset();
      refresh();
    },
  };
}

/** Buttons for all jobs that match the filter, and the progress of the action. */
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
    setText(button, VERBS[name].label_all);
    return button;
  }

  async #ask(name) {
    const filter = Object.fromEntries(
      Object.entries(this.filter()).filter(([, value]) => value !== "" && value !== null),
    );
    const { danger, label_all: label } = VERBS[name];
    const confirmed = await confirm(`${label} that match the filter?`, {
      detail: `${this.amount} (${describe(filter)}).`,
      yes: label,
      danger,
    });
    if (confirmed && this.running === null) await this.#run(name, plainFilter(filter));
  }

  async #run(name, filter) {
    this.running = new AbortController();
    this.signal.addEventListener("abort", () => this.running?.abort());
    this.stop.hidden = false;
    try {
      const sum = await performOnAll(
        name,
        filter,
        (done) => setText(this.progress, `${plural(done, "job")} so far…`),
        this.running.signal,
      );
      notice(sumUp(name, sum));
    } catch (error) {
      showError(error);
    }
    this.running = null;
    this.stop.hidden = true;
    setText(this.progress, "");
    this.changed();
  }
}

/** The filter with values for JSON. */
function plainFilter(filter) {
  return Object.fromEntries(
    Object.entries(filter).map(([name, value]) => [name, value.encoded === undefined ? value : textOf(value.encoded)]),
  );
}

function describe(filter) {
  const parts = Object.entries(plainFilter(filter)).map(
    ([name, value]) => `${name} ${name === "since" || name === "until" ? dateTime(value) : shown(value)}`,
  );
  return parts.length ? parts.join(", ") : "no filter: every job";
}
