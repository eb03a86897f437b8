// The form for a new job, empty or filled with what an old one had.
import { get, post } from "./api.js";
import { field, form, input, select } from "./dialog.js";
import { make } from "./dom.js";
import { notice } from "./notice.js";
import { link } from "./router.js";
import { encoded, shown } from "./text.js";

const SUGGESTIONS = 50;

/** `like`: function, payload (a string), priority and unique key to begin with. */
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
    placeholder: "What the worker gets: any text",
  });
  payload.value = like.payload ?? "";
  const fields = [
    field("Function", name),
    names,
    field("Payload", payload),
    make(
      "div",
      { class: "columns pairs" },
      field("Priority", select("priority", ["high", "normal", "low"], like.priority ?? "normal")),
      field(
        "Unique key",
        input("unique", { value: like.unique, placeholder: "none" }),
        "The same key waits or runs once",
      ),
      field(
        "Delay",
        input("delay", { type: "number", min: "0", step: "any", placeholder: "0" }),
        "Seconds until it may run",
      ),
      field(
        "Time limit",
        input("timeout", { type: "number", min: "0", step: "any", placeholder: "none" }),
        "Seconds a worker may take",
      ),
    ),
  ];
  const job = await form("Submit a job", fields, (data) => post("jobs", orderOf(data)), { yes: "Submit" });
  if (!job) return;
  notice(`Submitted ${shown(job.handle)}.`, { link: { href: link(`jobs/${encoded(job.handle)}`), text: "See it" } });
}

function orderOf(data) {
  const order = { function: data.get("function"), payload: data.get("payload"), priority: data.get("priority") };
  if (data.get("unique")) order.unique = data.get("unique");
  for (const name of ["delay", "timeout"]) {
    if (data.get(name)) order[name] = Number(data.get(name));
  }
  return order;
}

async function suggest(list, search) {
  try {
    const page = await get("functions", { search, limit: SUGGESTIONS });
    list.replaceChildren(...page.items.map((item) => make("option", { value: shown(item.name) })));
  } catch {
    // Only a convenience.
  }
}
