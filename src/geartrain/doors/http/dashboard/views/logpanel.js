// What the workers of a job have logged, if they keep that with the job.
import { address, download } from "../lib/api.js";
import { copyText } from "../lib/bytes.js";
import { make } from "../lib/dom.js";

export class LogPanel {
  constructor(handle, signal) {
    this.path = `jobs/${handle}/log`;
    this.signal = signal;
    this.text = "";
    this.element = make("div");
  }

  /** Most jobs have no log, and then there is no card. */
  async load() {
    let text;
    try {
      text = new TextDecoder().decode(await download(this.path, this.signal));
    } catch {
      return; // the page says why the job itself cannot be loaded
    }
    if (text === this.text) return;
    this.text = text;
    this.element.replaceChildren(...(text ? [this.#card()] : []));
  }

  #card() {
    const click = () => copyText(this.text);
    const copy = make("button", { type: "button", class: "quiet tiny push", on: { click } }, "Copy");
    const save = make("a", { class: "button quiet tiny", href: address(this.path), download: "" }, "Download");
    const head = make("div", { class: "card-head" }, make("h2", {}, "Log"), copy, save);
    const pre = make("pre", { tabindex: "0", "aria-label": "Log" }, this.text);
    return make("section", { class: "card bytes", "aria-label": "Log" }, head, pre);
  }
}
