// Keys for people who would rather not reach for the mouse.
import { make } from "./dom.js";
import * as dialog from "./dialog.js";

const PATIENCE = 1500; // between g and the letter

/** `pages`: letter → [fragment, name]; `keys`: key → [what it does, function]. */
export function start(pages, keys) {
  let going = 0;

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (performance.now() < going && pages[event.key]) {
      going = 0;
      event.preventDefault();
      location.hash = pages[event.key][0];
    } else if (event.key === "g") {
      going = performance.now() + PATIENCE;
    } else if (keys[event.key]) {
      event.preventDefault();
      keys[event.key][1]();
    }
  });
}

function isTyping(element) {
  return (
    element instanceof Element && element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]")
  );
}

export function showHelp(pages, keys) {
  const rows = [
    ...Object.entries(keys).map(([key, [what]]) => [[key], what]),
    ...Object.entries(pages).map(([key, [, name]]) => [["g", key], `Go to ${name}`]),
    [["Esc"], "Leave a field or a dialog"],
    [["←", "→"], "Read values in a chart"],
  ];
  const list = rows.flatMap(([sequence, what]) => [
    make("dt", {}, ...sequence.flatMap((key, index) => (index ? [" ", make("kbd", {}, key)] : [make("kbd", {}, key)]))),
    make("dd", {}, what),
  ]);
  dialog.open(
    (close) =>
      make(
        "div",
        { class: "inside" },
        make("h2", {}, "Keyboard"),
        make("dl", { class: "keys" }, ...list),
        make(
          "div",
          { class: "buttons" },
          make("button", { type: "button", autofocus: true, on: { click: () => close(null) } }, "Close"),
        ),
      ),
    { label: "Keyboard" },
  );
}

export function focusSearch() {
  const search = document.querySelector("main input[type=search]");
  search?.focus();
  search?.select();
}

/** The next or previous row's link. */
export function stepRow(step) {
  const links = [...document.querySelectorAll("main td.title a")];
  const here = links.indexOf(document.activeElement);
  const next = here === -1 ? (step > 0 ? 0 : links.length - 1) : here + step;
  links[Math.min(Math.max(next, 0), links.length - 1)]?.focus();
}
