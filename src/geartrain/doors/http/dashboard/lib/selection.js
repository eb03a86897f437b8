// Selected rows of a table: a checkbox in each row, ranges with the shift key, and all rows of the page at once.
import { make, setAttribute } from "./dom.js";

/** `name(row)` is the text for the checkbox of a row; `onChange` is called after every change. */
export class Selection {
  constructor(name, onChange) {
    this.name = name;
    this.onChange = onChange;
    this.keys = new Set();
    this.order = []; // keys of the rows that are shown
    this.boxes = new Map();
    this.anchor = null; // the key that was clicked last
    this.all = make("input", { type: "checkbox", "aria-label": "Select all rows of this page" });
    this.all.addEventListener("change", () => this.#selectPage(this.all.checked));
    this.head = make("th", { role: "columnheader", scope: "col", class: "pick" }, this.all);
  }

  /** The cell of a new row. */
  cell(key, row) {
    const box = make("input", { type: "checkbox", "aria-label": `Select ${this.name(row)}` });
    // A click has the shift key, and the space bar makes a click as well.
    box.addEventListener("click", (event) => this.#click(key, box.checked, event.shiftKey));
    this.boxes.set(key, box);
    return make("td", { role: "cell", class: "pick", "data-label": "Select" }, make("label", {}, box));
  }

  /** These rows are shown now; others are no longer selected. */
  shown(order) {
    this.order = order;
    const present = new Set(order);
    for (const key of this.boxes.keys()) if (!present.has(key)) this.boxes.delete(key);
    for (const key of this.keys) if (!present.has(key)) this.keys.delete(key);
    this.#changed();
  }

  selectPage() {
    this.#selectPage(true);
  }

  clear() {
    this.keys.clear();
    this.anchor = null;
    this.#changed();
  }

  get size() {
    return this.keys.size;
  }

  get isWholePage() {
    return this.order.length > 0 && this.keys.size === this.order.length;
  }

  #click(key, checked, isRange) {
    const from = this.order.indexOf(this.anchor);
    const to = this.order.indexOf(key);
    const range = isRange && from !== -1 ? this.order.slice(Math.min(from, to), Math.max(from, to) + 1) : [key];
    for (const one of range) this.#set(one, checked);
    this.anchor = key;
    this.#changed();
  }

  #selectPage(checked) {
    for (const key of this.order) this.#set(key, checked);
    this.#changed();
  }

  #set(key, checked) {
    if (checked) this.keys.add(key);
    else this.keys.delete(key);
  }

  #changed() {
    for (const [key, box] of this.boxes) {
      box.checked = this.keys.has(key);
      setAttribute(box.closest("tr"), "data-selected", box.checked ? "" : null);
    }
    this.all.checked = this.isWholePage;
    this.all.indeterminate = this.keys.size > 0 && !this.isWholePage;
    this.onChange();
  }
}
