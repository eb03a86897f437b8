// The payload or the result of a job: loaded once, and again only when its size changes.
import { address, download, isAbort } from "../lib/api.js";
import { bytesView } from "../lib/bytes.js";
import { make } from "../lib/dom.js";
import { size } from "../lib/format.js";

const MOST_LOADED = 4 * 1024 * 1024; // bytes; larger ones can only be downloaded

export class BytesPanel {
  /** `special(bytes)` may return an element that is shown instead. */
  constructor(label, handle, signal, special = () => null) {
    this.name = label;
    this.label = label;
    this.resource = `jobs/${handle}/${label.toLowerCase()}`;
    this.path = this.resource;
    this.signal = signal;
    this.special = special;
    this.size = undefined;
    this.element = make("div");
  }

  async show(amount, kept = null) {
    if (amount === this.size) return;
    this.size = amount;
    const part = isPart(amount, kept);
    this.label = part ? `${this.name}, the first ${size(kept)} of ${size(amount)}` : this.name;
    this.path = part ? `${this.resource}?part=true` : this.resource;
    if (amount === null) this.element.replaceChildren();
    else if (amount > MOST_LOADED) this.element.replaceChildren(this.#offer(amount));
    else await this.#load();
  }

  async #load() {
    try {
      const bytes = await download(this.path, this.signal);
      this.element.replaceChildren(this.special(bytes) ?? bytesView(this.label, bytes, address(this.path)));
    } catch (error) {
      this.size = undefined;
      if (!isAbort(error))
        this.element.replaceChildren(make("p", { class: "card soft" }, `${this.label}: ${error.message}`));
    }
  }

  #offer(amount) {
    const save = make("a", { class: "button", href: address(this.path), download: "" }, "Download");
    return make(
      "section",
      { class: "card row" },
      make("h2", {}, this.label),
      make("span", { class: "soft" }, `${size(amount)}, too large to show`),
      save,
    );
  }
}

/** Whether only the beginning of a result is kept. */
export function isPart(amount, kept) {
  return kept !== null && kept !== undefined && kept < amount;
}
