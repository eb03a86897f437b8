// Relative times that stay current.
import { make, setAttribute, setText } from "./dom.js";
import { duration, dateTime } from "./format.js";
import { now } from "./live.js";

/** A `<time>` element. `style`: "ago" (3 s ago), "age" (3 s) or "until" (in 3 s). */
export function time(at, style = "ago") {
  return setTime(make("time"), at, style);
}

export function setTime(element, at, style = "ago") {
  setAttribute(element, "data-at", at);
  element.dataset.style = style;
  setAttribute(element, "datetime", at === null ? null : new Date(at * 1000).toISOString());
  setAttribute(element, "title", at === null ? null : dateTime(at));
  update(element);
  return element;
}

const FORMATS = {
  ago: (seconds) => (seconds < 1 ? "just now" : `${coarse(seconds)} ago`),
  age: (seconds) => wholeSeconds(Math.max(seconds, 0)),
  until: (seconds) => (seconds > 0 ? `${wholeSeconds(seconds)} ago` : `in ${wholeSeconds(-seconds)}`),
};

// Minutes without seconds: a hundred rows that change every second distract, and cost the browser time.
function coarse(seconds) {
  return seconds >= 60 && seconds < 3600 ? `${Math.floor(seconds / 60)}m` : wholeSeconds(seconds);
}

// No tenths of a second: the text changes only once a second.
function wholeSeconds(seconds) {
  return seconds < 1 ? "<1 s" : duration(seconds < 60 ? Math.floor(seconds) + 0.0001 : seconds).replace(".0 s", " s");
}

function update(element) {
  const at = element.dataset.at;
  setText(element, at === undefined ? "–" : FORMATS[element.dataset.style](now() - Number(at)));
}

/** Update all times of the page once a second. */
export function keepTimesCurrent() {
  setInterval(() => {
    if (!document.hidden) requestAnimationFrame(() => document.querySelectorAll("time[data-at]").forEach(update));
  }, 1000);
}
