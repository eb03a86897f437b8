// The failed and dead jobs of one reason.
import { verbsFor } from "../lib/actions.js";
import { make } from "../lib/dom.js";
import { link } from "../lib/router.js";
import { decoded } from "../lib/text.js";
import { empty } from "../lib/widgets.js";
import { jobList } from "./joblist.js";

const COLUMNS = ["handle", "state", "function", "reason", "payload", "attempts", "ended", "actions"];

export function openGroup(root, route, signal) {
  const { state = "", search = "", function: name = "", reason } = route.query;
  const chosen = { state, search: decoded(search), function: name ? { encoded: name } : "" };
  const list = jobList({
    label: "Jobs with this reason",
    filter: () => ({ ...chosen, reason: decoded(reason) }),
    columns: COLUMNS,
    signal,
    verbs: () => [...new Set([state || ["failed", "dead"]].flat().flatMap(verbsFor))],
    empty: () => empty("No jobs with this reason", "They were retried or deleted, or are no longer kept."),
  });
  root.append(
    make(
      "div",
      { class: "head" },
      make("h1", { title: decoded(reason) }, decoded(reason) || "no reason given"),
      make("a", { class: "small", href: link("failures", chosen) }, "All reasons"),
      list.pager,
    ),
    list.bulk,
    list.element,
  );
  list.begin();
}
