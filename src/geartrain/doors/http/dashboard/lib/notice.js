// What came of an action, said to eyes and screen readers, and taken away after a while.
import { make } from "./dom.js";
import { isAbort } from "./api.js";

const SECONDS = { good: 6, bad: 12 };
const PLACE = { good: "notices", bad: "alerts" };
const MOST = 4;

export function notice(text, { tone = "good", link = null } = {}) {
  const close = make("button", { type: "button", class: "quiet tiny", "aria-label": "Dismiss" }, "×");
  const more = link ? make("a", { href: link.href }, link.text) : null;
  const box = make("div", { class: "notice", data: { tone } }, make("p", {}, text, more ? " " : null, more), close);
  close.addEventListener("click", () => box.remove());
  const place = document.getElementById(PLACE[tone]);
  place.append(box);
  while (place.children.length > MOST) place.firstChild.remove();
  setTimeout(() => box.remove(), SECONDS[tone] * 1000);
}

export function complain(error) {
  if (!isAbort(error)) notice(error.message, { tone: "bad" });
}

/** A button's click that talks to the server: no second click meanwhile, and a problem is told. */
export function action(work) {
  return async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      await work(event);
    } catch (error) {
      complain(error);
    } finally {
      button.disabled = false;
    }
  };
}
