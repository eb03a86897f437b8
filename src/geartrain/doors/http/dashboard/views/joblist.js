// A list of jobs that match a filter, with pages, a selection, and buttons for the selected jobs or for all.
import { get } from "../lib/api.js";
import { make } from "../lib/dom.js";
import { count, plural } from "../lib/format.js";
import { autoRefresh } from "../lib/refresh.js";
import { Selection } from "../lib/selection.js";
import { problemBox } from "../lib/widgets.js";
import { Pager } from "../lib/table.js";
import { shown } from "../lib/text.js";
import { BulkBar } from "./bulkbar.js";
import { jobColumns, jobTable } from "./jobtable.js";

const PAGE = 100;

/**
 * `filter()` returns the API's parameters, `columns` are names of columns, `empty()` returns the empty state, and
 * `verbs()` the names of the verbs for all jobs that match. Returns elements and `changed()`, for a new filter.
 */
export function jobList({ label, filter, columns, empty, verbs, signal, noun = "jobs" }) {
  const problem = problemBox();
  const selection = new Selection((job) => shown(job.handle), offer);
  const pager = new Pager(() => turn());
  const table = jobTable(
    label,
    jobColumns(columns, () => refresh()),
    selection,
  );
  const none = make("div", { hidden: true });
  const paused = make("span", { class: "soft small", hidden: true }, "refresh paused");
  const bulk = new BulkBar(() => turn(), signal);
  let page = { items: [] };
  let all = false; // all jobs that match are selected, on other pages as well

  // Rows must not move while the pointer or the focus is on them, or some are selected.
  const inUse = () =>
    selection.size > 0 || table.element.matches(":hover") || table.element.contains(document.activeElement);

  async function load(requested) {
    paused.hidden = !inUse();
    if (!requested && inUse()) return;
    page = await get("jobs", { ...filter(), limit: PAGE, after: pager.after }, signal);
    table.update(page.items);
    pager.update(page, noun);
    table.element.hidden = page.items.length === 0;
    none.hidden = page.items.length > 0;
    if (!none.hidden) none.replaceChildren(empty());
  }

  function offer() {
    if (!selection.isWholePage) all = false;
    if (selection.size === 0 || all) bulk.offerAll(page.items.length ? verbs() : [], filter, amountOf(page));
    else bulk.offerSelected(selectedJobs(), [...selectionButtons()]);
  }

  function* selectionButtons() {
    if (!selection.isWholePage) yield quiet("Select page", () => selection.selectPage());
    else if ((page.after || pager.after) && verbs().length)
      yield quiet(`Select all that match (${amountOf(page)})`, () => {
        all = true;
        offer();
      });
    yield quiet("Clear selection", () => selection.clear());
  }

  const selectedJobs = () => page.items.filter((job) => selection.keys.has(shown(job.handle)));

  function turn() {
    selection.clear();
    refresh();
  }

  let refresh = () => {};
  return {
    element: make("div", { class: "list" }, problem.element, none, table.element),
    bulk: bulk.element,
    pager: make("div", { class: "row push" }, paused, pager.element),
    begin() {
      refresh = autoRefresh(load, signal, problem.show);
    },
    changed() {
      pager.reset();
      turn();
    },
  };
}

function quiet(text, click) {
  return make("button", { type: "button", class: "quiet", on: { click } }, text);
}

function amountOf(page) {
  if (page.total !== null && page.total !== undefined) return plural(page.total, "job");
  return page.after ? `more than ${count(page.items.length)} jobs` : plural(page.items.length, "job");
}
