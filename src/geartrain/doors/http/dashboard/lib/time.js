// Times that tell how long ago they were, and go on telling.
import { make, mark, say } from "./dom.js";
import { duration, moment } from "./format.js";
import { now } from "./live.js";

/** `<time>` for a moment. `style`: "ago" (3 s ago), "age" (3 s) or "until" (in 3 s). */
export function time(at, style = "ago") {
  return setTime(make("time"), at, style);
}

export function setTime(element, at, style = "ago") {
  mark(element, "data-at", at);
  element.dataset.style = style;
  mark(element, "datetime", at === null ? null : new Date(at * 1000).toISOString());
  mark(element, "title", at === null ? null : moment(at));
  tell(element);
  return element;
}

const TELL = {
  ago: (seconds) => (seconds < 1 ? "just now" : `${calm(seconds)} ago`),
  age: (seconds) => steps(Math.max(seconds, 0)),
  until: (seconds) => (seconds > 0 ? `${steps(seconds)} ago` : `in ${steps(-seconds)}`),
};

// A hundred rows that count the seconds of minutes long past would be restless, and work for the browser.
function calm(seconds) {
  return seconds >= 60 && seconds < 3600 ? `${Math.floor(seconds / 60)}m` : steps(seconds);
}

// Tenths of a second that change once a second are only noise.
function steps(seconds) {
  return seconds < 1 ? "<1 s" : duration(seconds < 60 ? Math.floor(seconds) + 0.0001 : seconds).replace(".0 s", " s");
}

function tell(element) {
  const at = element.dataset.at;
  say(element, at === undefined ? "–" : TELL[element.dataset.style](now() - Number(at)));
}

/** Once a second, for all that are on the page. */
export function keepTelling() {
  setInterval(() => {
    if (!document.hidden) requestAnimationFrame(() => document.querySelectorAll("time[data-at]").forEach(tell));
  }, 1000);
}
