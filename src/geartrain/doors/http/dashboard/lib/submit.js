// The form to submit a job, empty or filled from another job.
import { get, post } from "./api.js";
import { field, form, input, select } from "./dialog.js";
import { make } from "./dom.js";
import { notice } from "./notice.js";
import { link } from "./router.js";
import { encoded, shown } from "./text.js";

const SUGGESTIONS = 50;

/** `like`: initial function, payload (a string, or bytes that are not text), priority and unique key. */
export async function askForJob(like = {}) {
  const names = make("datalist", { id: "function-names" });
  const name = input("function", {
    required: true,
    autofocus: true,
    value: like.function,
    list: "function-names",
    placeholder: "resize",
  });
  suggest(names, "");
  name.addEventListener("input", () => suggest(names, name.value));
  const payload = make("textarea", {
    name: "payload",
    spellcheck: "false",
    placeholder: "Any text",
  });
  const bytes = typeof like.payload === "object" ? like.payload : null;
  payload.value = bytes === null ? (like.payload ?? "") : shown(bytes);
  payload.readOnly = bytes !== null;
  const fields = [
    field("Function", name),
    names,
    field("Payload", payload, bytes === null ? "" : "Not text: submitted as it is"),
    make(
      "div",
      { class: "columns pairs" },
      field("Priority", select("priority", ["high", "normal", "low"], like.priority ?? "normal")),
      field(
        "Unique key",
        input("unique", { value: like.unique, placeholder: "none" }),
        "Joins a job with the same key",
      ),
      field(
        "Delay",
        input("delay", { type: "number", min: "0", step: "any", placeholder: "0" }),
        "Seconds before the job may run",
      ),
      field(
        "Timeout",
        input("timeout", { type: "number", min: "0", step: "any", placeholder: "none" }),
        "Seconds that a worker may take",
      ),
      field(
        "Expires",
        input("expires", { type: "number", min: "0", step: "any", placeholder: "never" }),
        "Seconds in which a worker must take it",
      ),
    ),
  ];
  const job = await form("Submit a job", fields, (data) => post("jobs", requestOf(data, bytes)), { yes: "Submit" });
  if (!job) return;
  notice(`Submitted ${shown(job.handle)}.`, { link: { href: link(`jobs/${encoded(job.handle)}`), text: "Show job" } });
}

function requestOf(data, bytes) {
  const payload = bytes ?? data.get("payload");
  const request = { function: data.get("function"), payload, priority: data.get("priority") };
  if (data.get("unique")) request.unique = data.get("unique");
  for (const name of ["delay", "timeout", "expires"]) {
    if (data.get(name)) request[name] = Number(data.get(name));
  }
  return request;
}

async function suggest(list, search) {
  try {
    const page = await get("functions", { search, limit: SUGGESTIONS });
    list.replaceChildren(...page.items.map((item) => make("option", { value: shown(item.name) })));
  } catch {
    // Suggestions are optional.
  }
}
