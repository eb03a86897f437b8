// The limits of a function's running jobs: the form, and how they are shown.
import { send } from "./actions.js";
import { field, form, input } from "./dialog.js";
import { make } from "./dom.js";
import { count, NONE } from "./format.js";
import { notice } from "./notice.js";
import { shown } from "./text.js";

const DEFAULT_NUMBER = -1; // what the code of the task says applies
const DEFAULT = "default"; // the same of a text
const NUMBERS = ["max_running", "max_running_per_partition", "burst", "burst_per_partition"];
const TEXTS = ["rate", "rate_per_partition", "partition_from_unique"];

/** The form for what an operator allows; an empty field leaves it to the code. */
export function askForConcurrency(item) {
  const limits = item.running_limits;
  const own = (name) => (item.limits_set.includes(name) ? limits[name] : "");
  const other = (name, otherwise) => (item.limits_set.includes(name) ? "" : (limits[name] ?? otherwise));
  const number = (name, least, otherwise) =>
    input(name, { type: "number", min: least, step: "1", value: own(name), placeholder: other(name, otherwise) });
  const text = (name, otherwise) => input(name, { value: own(name), placeholder: other(name, otherwise) });
  const pair = (...fields) => make("div", { class: "columns" }, ...fields);
  const fields = [
    pair(
      field("Jobs that run at once", number("max_running", "0", "no limit")),
      field("in each partition", number("max_running_per_partition", "0", "no limit")),
    ),
    pair(
      field("Starts, such as 100/m", text("rate", "no limit")),
      field("in each partition", text("rate_per_partition", "no limit")),
    ),
    pair(
      field("at once", number("burst", "1", "1")),
      field("at once in each partition", number("burst_per_partition", "1", "1")),
    ),
    field("The partition is what a unique key has before", text("partition_from_unique", "nothing")),
  ];
  const save = async (data) => {
    const numbers = NUMBERS.map((name) => [name, data.get(name) === "" ? DEFAULT_NUMBER : Number(data.get(name))]);
    const texts = TEXTS.map((name) => [name, data.get(name) === "" ? DEFAULT : data.get(name)]);
    await send("limit_running", item.name, Object.fromEntries([...numbers, ...texts]));
    notice(`Concurrency of ${shown(item.name)} saved.`);
  };
  return form(`Concurrency of ${shown(item.name)}`, fields, save, {
    note: "Jobs above a limit wait. 0 or none: no limit. An empty field: what the code of the task says.",
  });
}

/** What is limited, in a few words. */
export function concurrencyText(limits) {
  const parts = [
    limits.max_running ? `${count(limits.max_running)} at once` : "",
    limits.max_running_per_partition ? `${count(limits.max_running_per_partition)} of a partition` : "",
    rateText(limits.rate, ""),
    rateText(limits.rate_per_partition, " in a partition"),
  ].filter((part) => part);
  return parts.length ? parts.join(", ") : NONE;
}

function rateText(rate, where) {
  return rate && rate !== "none" ? `${rate}${where}` : "";
}
