// Keyboard shortcuts.
import { make } from "./dom.js";
import * as dialog from "./dialog.js";

const SEQUENCE_TIMEOUT = 1500; // milliseconds between g and the letter

/** `pages`: letter → [fragment, name]; `keys`: key → [description, function]. */
export function start(pages, keys) {
  let sequenceEnds = 0; // after g, until when a letter opens a page

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (performance.now() < sequenceEnds && pages[event.key]) {
      sequenceEnds = 0;
      event.preventDefault();
      location.hash = pages[event.key][0];
    } else if (event.key === "g") {
      sequenceEnds = performance.now() + SEQUENCE_TIMEOUT;
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
    ...Object.entries(keys).map(([key, [description]]) => [[key], description]),
    ...Object.entries(pages).map(([key, [, name]]) => [["g", key], `Go to ${name}`]),
    [["Esc"], "Leave a field, close a dialog"],
    [["←", "→"], "Read single values in a focused chart"],
  ];
  const list = rows.flatMap(([sequence, description]) => [
    make("dt", {}, ...sequence.flatMap((key, index) => (index ? [" ", make("kbd", {}, key)] : [make("kbd", {}, key)]))),
    make("dd", {}, description),
  ]);
  dialog.open(
    (close) =>
      make(
        "div",
        { class: "inside" },
        make("h2", {}, "Keyboard shortcuts"),
        make("dl", { class: "keys" }, ...list),
        make(
          "div",
          { class: "buttons" },
          make("button", { type: "button", autofocus: true, on: { click: () => close(null) } }, "Close"),
        ),
      ),
    { label: "Keyboard shortcuts" },
  );
}

export function focusSearch() {
  const search = document.querySelector("main input[type=search]");
  search?.focus();
  search?.select();
}

/** Select the row that has the focus, or no longer. */
export function toggleRow() {
  document.activeElement.closest("tr")?.querySelector("td.pick input")?.click();
}

/** Focus the link of the next or previous row. */
export function stepRow(step) {
  const links = [...document.querySelectorAll("main td.title a")];
  const current = links.indexOf(document.activeElement);
  const next = current === -1 ? (step > 0 ? 0 : links.length - 1) : current + step;
  links[Math.min(Math.max(next, 0), links.length - 1)]?.focus();
}
