// Widgets that several pages use.
import { make, setAttribute, setText } from "./dom.js";
import { copyText } from "./bytes.js";
import { link } from "./router.js";
import { encoded, shown } from "./text.js";

const NAME_SHOWN = 24; // characters
const NAME_END = 8;

/** A state, as a coloured label. */
export function badge(text, tone = text) {
  return make("span", { class: "badge", "data-dot": true, "data-tone": tone }, text);
}

export function functionLink(name) {
  return make("a", { href: link(`functions/${encoded(name)}`) }, shown(name) || "(no name)");
}

/** The same for a narrow column: the beginning of a long name is cut with an ellipsis, its end stays. */
export function cutFunctionLink(name) {
  const anchor = functionLink(name);
  anchor.replaceChildren(...cutName(name));
  return anchor;
}

/** The parts of a name of which the first is cut if there is no room. */
export function cutName(name, whole = NAME_SHOWN) {
  const text = shown(name) || "(no name)";
  if (text.length <= whole) return [text];
  return [
    make("span", { class: "name-start" }, text.slice(0, -NAME_END)),
    make("span", { class: "name-end" }, text.slice(-NAME_END)),
  ];
}

export function jobLink(handle) {
  return make("a", { class: "mono", href: link(`jobs/${encoded(handle)}`) }, shown(handle));
}

/** A box for an error of the page; `show(null)` hides it. */
export function problemBox() {
  const text = make("span");
  const element = make("div", { class: "problem", role: "alert", hidden: true }, text);
  return {
    element,
    show(problem) {
      element.hidden = problem === null;
      setText(text, problem ? problem.message : "");
    },
  };
}

/** An empty state: a title and a text. */
export function empty(title, text) {
  return make("div", { class: "empty card" }, make("h2", {}, title), make("p", {}, text));
}

/** A command line that can be copied. */
export function command(text) {
  const copy = make("button", { type: "button", class: "quiet tiny", on: { click: () => copyText(text) } }, "Copy");
  return make("div", { class: "command" }, make("code", {}, text), copy);
}

/** A number with a label; `set(value, unit, note)`. */
export function tile(name, { tone = null, href = null } = {}) {
  const value = make("span");
  const unit = make("small");
  const note = make("span", { class: "note" });
  const element = make(
    href ? "a" : "div",
    { class: "tile", href, "data-tone": tone },
    make("span", { class: "name" }, name),
    make("span", { class: "value" }, value, unit),
    note,
  );
  return {
    element,
    value,
    note,
    set(text, after = "", below = "") {
      setText(value, text);
      setText(unit, after);
      setText(note, below);
    },
  };
}

/** Names and values; a value may be an element. */
export function facts(pairs) {
  const parts = pairs
    .filter((pair) => pair !== null && pair[1] !== null && pair[1] !== "")
    .flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return make("dl", { class: "facts" }, ...parts);
}

/** A choice as a row of buttons: `choices` are pairs of value and text. */
export function segments(label, choices, chosen, onChoose) {
  const buttons = choices.map(([value, text]) =>
    make(
      "button",
      { type: "button", "aria-pressed": String(value === chosen), on: { click: () => choose(value) } },
      text,
    ),
  );
  function choose(value) {
    choices.forEach(([other], index) => setAttribute(buttons[index], "aria-pressed", String(other === value)));
    onChoose(value);
  }
  return make("div", { class: "segments", role: "group", "aria-label": label }, ...buttons);
}

/** A search field; calls `onSearch` after a pause in typing. */
export function searchField(placeholder, value, onSearch) {
  const field = make("input", {
    type: "search",
    class: "search",
    placeholder,
    "aria-label": placeholder,
    value,
    spellcheck: "false",
  });
  let timer = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => onSearch(field.value), 200);
  });
  return field;
}
