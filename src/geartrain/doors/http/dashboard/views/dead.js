// Dead jobs with their reasons, to be retried or deleted.
import { verbsFor } from "../lib/actions.js";
import { make } from "../lib/dom.js";
import { empty, searchField } from "../lib/widgets.js";
import { replaceQuery } from "../lib/router.js";
import { decoded } from "../lib/text.js";
import { jobList } from "./joblist.js";

const COLUMNS = ["handle", "function", "reason", "attempts", "ended", "payload", "actions"];

export const title = () => "Dead jobs";

export function open(root, route, signal) {
  const chosen = { search: decoded(route.query.search ?? ""), function: route.query.function ?? "" };
  const named = () => (chosen.function ? { encoded: chosen.function } : "");
  const list = jobList({
    label: "Dead jobs",
    filter: () => ({ state: "dead", search: chosen.search, function: named() }),
    columns: COLUMNS,
    signal,
    verbs: () => verbsFor("dead"),
    empty: () =>
      chosen.search || chosen.function
        ? empty(
            "No dead jobs match",
            "The search looks for text in the handle, unique key, function and payload.",
          )
        : empty(
            "No dead jobs",
            "A job is dead after too many failed attempts. It stays here with its reason until someone retries or " +
              "deletes it.",
          ),
  });

  function change(part) {
    Object.assign(chosen, part);
    replaceQuery("dead", { search: chosen.search, function: named() });
    list.changed();
  }

  const byFunction = make("input", {
    placeholder: "Function",
    "aria-label": "Function",
    value: decoded(chosen.function),
    spellcheck: "false",
  });
  byFunction.addEventListener("change", () => change({ function: encodeURIComponent(byFunction.value) }));
  root.append(
    make(
      "div",
      { class: "head" },
      make("h1", {}, "Dead jobs"),
      searchField("Search dead jobs", chosen.search, (search) => change({ search })),
      byFunction,
      list.pager,
    ),
    list.bulk,
    list.element,
  );
  list.begin();
}
