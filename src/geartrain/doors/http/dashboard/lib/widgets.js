// Small pieces that several pages show in the same way.
import { make, mark, say } from "./dom.js";
import { copyText } from "./bytes.js";
import { link } from "./router.js";
import { encoded, shown } from "./text.js";

/** A job's state, in words and colour. */
export function badge(text, tone = text) {
  return make("span", { class: "badge", "data-dot": true, "data-tone": tone }, text);
}

export function functionLink(name) {
  return make("a", { href: link(`functions/${encoded(name)}`) }, shown(name) || "(no name)");
}

export function jobLink(handle) {
  return make("a", { class: "mono", href: link(`jobs/${encoded(handle)}`) }, shown(handle));
}

/** Where a page tells that it could not load; `show(null)` takes it away. */
export function problemBox() {
  const text = make("span");
  const element = make("div", { class: "problem", role: "alert", hidden: true }, text);
  return {
    element,
    show(problem) {
      element.hidden = problem === null;
      say(text, problem ? problem.message : "");
    },
  };
}

/** What to do when there is nothing to show. */
export function empty(title, text, ...commands) {
  return make("div", { class: "empty card" }, make("h2", {}, title), make("p", {}, text), ...commands.map(command));
}

function command(text) {
  const copy = make("button", { type: "button", class: "quiet tiny", on: { click: () => copyText(text) } }, "Copy");
  return make("div", { class: "command" }, make("code", {}, text), copy);
}

/** A number with a name; `set(value, unit, note)`. */
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
      say(value, text);
      say(unit, after);
      say(note, below);
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

/** One of several, as buttons: `choices` are pairs of value and text. */
export function segments(label, choices, chosen, onChoose) {
  const buttons = choices.map(([value, text]) =>
    make(
      "button",
      { type: "button", "aria-pressed": String(value === chosen), on: { click: () => choose(value) } },
      text,
    ),
  );
  function choose(value) {
    choices.forEach(([other], index) => mark(buttons[index], "aria-pressed", String(other === value)));
    onChoose(value);
  }
  return make("div", { class: "segments", role: "group", "aria-label": label }, ...buttons);
}

/** A search field that reports after a pause in the typing. */
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
