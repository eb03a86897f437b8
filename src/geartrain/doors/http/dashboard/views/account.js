// Who is logged in and what they may do; for those who may not read anything, the only page besides their jobs.
import { may } from "../lib/access.js";
import { make } from "../lib/dom.js";
import { field, input } from "../lib/dialog.js";
import { session } from "../lib/login.js";
import { link } from "../lib/router.js";
import { facts } from "../lib/widgets.js";

export const title = () => "Account";

const MEANINGS = {
  read: "see functions, jobs with their payloads, workers, schedules and statistics",
  submit: "submit jobs, and follow them",
  work: "run jobs, by a worker program",
  admin: "everything: pause, limit, retry, cancel, delete, schedules, and all of the above",
};

export function open(root) {
  const current = session();
  root.append(make("div", { class: "head" }, make("h1", {}, "Account")));
  if (current === null) return;
  const rows = current.rights.map((word) => {
    const [scope, ...pattern] = word.split(":");
    const where = pattern.length ? `for functions ${pattern.join(":")}` : "for all functions";
    return [make("code", {}, word), `${MEANINGS[scope]}; ${where}`];
  });
  root.append(
    make("section", { class: "card" }, make("h2", {}, current.user || "Everybody"), facts(rows)),
    ...(may("submit") ? [jobSearch()] : []),
  );
}

/** Jobs whose handles one knows can be seen without the right to read lists. */
function jobSearch() {
  const handle = input("handle", { required: true, placeholder: "H:host:1" });
  const search = make(
    "form",
    {},
    field("Handle", handle, "Of a job that you submitted"),
    make("div", { class: "row" }, make("button", { type: "submit" }, "Show job")),
  );
  search.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = link(`jobs/${encodeURIComponent(handle.value.trim())}`);
  });
  return make("section", { class: "card" }, make("h2", {}, "Find a job"), search);
}
