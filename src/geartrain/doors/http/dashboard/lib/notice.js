// Notices about the result of an action, also for screen readers. They disappear after some seconds.
import { make } from "./dom.js";
import { isAbort } from "./api.js";

const SECONDS = { good: 6, bad: 12 };
const CONTAINER = { good: "notices", bad: "alerts" };
const MOST = 4;

export function notice(text, { tone = "good", link = null } = {}) {
  const close = make("button", { type: "button", class: "quiet tiny", "aria-label": "Dismiss" }, "×");
  const more = link ? make("a", { href: link.href }, link.text) : null;
  const box = make("div", { class: "notice", data: { tone } }, make("p", {}, text, more ? " " : null, more), close);
  close.addEventListener("click", () => box.remove());
  const container = document.getElementById(CONTAINER[tone]);
  container.append(box);
  while (container.children.length > MOST) container.firstChild.remove();
  setTimeout(() => box.remove(), SECONDS[tone] * 1000);
}

export function showError(error) {
  if (!isAbort(error)) notice(error.message, { tone: "bad" });
}

/** A click handler for a request: disables the button meanwhile, and shows errors. */
export function action(work) {
  return async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      await work(event);
    } catch (error) {
      showError(error);
    } finally {
      button.disabled = false;
    }
  };
}
