// Confirmations and forms in a modal dialog. The browser keeps the focus inside and restores it afterwards.
import { make } from "./dom.js";

/** Show content in a dialog; resolves with the value that `close(value)` got, or null when dismissed. */
export function open(content, { label, dismissible = true } = {}) {
  return new Promise((resolve) => {
    const dialog = make("dialog", { "aria-label": label });
    const close = (value) => {
      dialog.returned = value;
      dialog.close();
    };
    dialog.append(content(close));
    dialog.addEventListener("cancel", (event) => dismissible || event.preventDefault());
    dialog.addEventListener("click", (event) => event.target === dialog && dismissible && close(null));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returned ?? null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Ask for a confirmation; resolves with true or false. */
export function confirm(question, { detail = "", yes = "Yes", danger = false } = {}) {
  const content = (close) =>
    make(
      "div",
      { class: "inside" },
      make("h2", {}, question),
      detail ? make("p", { class: "soft" }, detail) : null,
      buttons(
        make("button", { type: "button", on: { click: () => close(false) } }, "Close"),
        make(
          "button",
          { type: "button", class: danger ? "danger" : "primary", autofocus: true, on: { click: () => close(true) } },
          yes,
        ),
      ),
    );
  return open(content, { label: question }).then(Boolean);
}

/**
 * A form. `fields` are elements; `send(FormData)` submits them. If that fails, the form stays open and shows the error.
 * Resolves with the value of `send`, or null.
 */
export function form(title, fields, send, { yes = "Save", dismissible = true, note = null } = {}) {
  const content = (close) => {
    const problem = make("p", { class: "form-error", role: "alert" });
    const submit = make("button", { type: "submit", class: "primary" }, yes);
    const cancel = make("button", { type: "button", on: { click: () => close(null) } }, "Cancel");
    const all = make(
      "form",
      { method: "dialog" },
      make("h2", {}, title),
      note ? make("p", { class: "soft" }, note) : null,
      ...fields,
      problem,
      buttons(dismissible ? cancel : null, submit),
    );
    all.addEventListener("submit", async (event) => {
      event.preventDefault();
      submit.disabled = true;
      problem.textContent = "";
      try {
        close((await send(new FormData(all))) ?? true);
      } catch (error) {
        problem.textContent = error.message;
      } finally {
        submit.disabled = false;
      }
    });
    return all;
  };
  return open(content, { label: title, dismissible });
}

function buttons(...all) {
  return make("div", { class: "buttons" }, ...all);
}

/** A labelled control for a form. */
export function field(label, control, hint = "") {
  return make("label", { class: "field" }, label, control, hint ? make("small", {}, hint) : null);
}

export function input(name, properties = {}) {
  return make("input", { name, autocomplete: "off", spellcheck: "false", ...properties });
}

/** `choices`: texts, or pairs of value and text. */
export function select(name, choices, chosen) {
  const options = choices.map((choice) => {
    const [value, text] = Array.isArray(choice) ? choice : [choice, choice];
    return make("option", { value, selected: value === chosen }, text);
  });
  return make("select", { name }, ...options);
}
