// A table that is updated in place: a refresh changes only the cells that differ.
import { make, setAttribute, setText } from "./dom.js";
import { count } from "./format.js";

/**
 * `columns`: `{ label, value(row), fill?(cell, row), class?, sort?, hint? }`. `value` is the text; for a column with
 * `fill` it decides whether the cell is filled again. `key(row)` identifies a row. `selection` adds checkboxes.
 */
export class Table {
  constructor({ label, columns, key, onSort = null, selection = null }) {
    this.columns = columns;
    this.key = key;
    this.selection = selection;
    this.rows = new Map();
    this.order = "";
    this.heads = columns.map((column) => head(column, onSort));
    this.body = make("tbody", { role: "rowgroup" });
    const header = make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, selection?.head, ...this.heads));
    // Explicit roles, because a table that is laid out as cards loses its own.
    const table = make("table", { role: "table", "aria-label": label }, header, this.body);
    this.element = make("div", { class: "table-wrap cardlike" }, table);
  }

  /** Show these rows, in this order. */
  update(items) {
    const keys = items.map((item) => String(this.key(item)));
    const present = new Set(keys);
    for (const [key, row] of this.rows) {
      if (!present.has(key)) {
        row.element.remove();
        this.rows.delete(key);
      }
    }
    items.forEach((item, index) => this.#show(keys[index], item));
    const order = keys.join("\n");
    if (order !== this.order) this.#arrange(keys);
    this.order = order;
    this.selection?.shown(keys);
  }

  sorted(by, direction) {
    this.columns.forEach((column, index) => {
      setAttribute(this.heads[index], "aria-sort", column.sort && column.sort === by ? direction : null);
    });
  }

  #show(key, item) {
    let row = this.rows.get(key);
    if (row === undefined) {
      row = newRow(this.columns);
      if (this.selection) row.element.prepend(this.selection.cell(key, item));
      this.rows.set(key, row);
    }
    row.item = item;
    this.columns.forEach((column, index) => fillCell(column, row, index));
  }

  // Moves only the rows that are out of place, so that a new row on top does not touch the others.
  #arrange(keys) {
    let position = this.body.firstChild;
    for (const key of keys) {
      const { element } = this.rows.get(key);
      if (element === position) position = position.nextSibling;
      else this.body.insertBefore(element, position);
    }
  }
}

function head(column, onSort) {
  const content =
    column.sort && onSort
      ? make(
          "button",
          { type: "button", title: `Sort by ${column.label.toLowerCase()}`, on: { click: () => onSort(column.sort) } },
          column.label,
        )
      : column.label || make("span", { class: "visually-hidden" }, "Actions");
  return make(
    "th",
    { role: "columnheader", scope: "col", class: headClass(column), title: column.hint },
    content,
  );
}

/** The classes of a column that its head has as well: numbers are right-aligned, some columns may be hidden. */
const SHARED = ["number", "roomy", "cluster-only"];

function headClass(column) {
  const shared = (column.class ?? "").split(" ").filter((name) => SHARED.includes(name));
  return shared.join(" ") || null;
}

function newRow(columns) {
  const cells = columns.map((column) => make("td", { role: "cell", class: column.class, "data-label": column.label }));
  const row = { element: make("tr", { role: "row" }, ...cells), cells, shown: [], item: null };
  // Listeners of a cell are created once and need the row's current data.
  for (const cell of cells) cell.current = () => row.item;
  return row;
}

function fillCell(column, row, index) {
  const value = column.value(row.item);
  if (row.shown[index] === value) return;
  row.shown[index] = value;
  const cell = row.cells[index];
  if (column.fill) column.fill(cell, row.item);
  else {
    setText(cell, value);
    if (column.title) setAttribute(cell, "title", value);
  }
}

/** A column of numbers; zeros are dimmed. */
export function numberColumn(label, of, write = count, more = {}) {
  return {
    label,
    class: "number",
    value: (row) => write(of(row)),
    fill(cell, row) {
      setText(cell, write(of(row)));
      cell.classList.toggle("zero", !of(row));
    },
    ...more,
  };
}

/** Pages of a list with cursors: `pager.after` is where the current page begins. */
export class Pager {
  constructor(onPage) {
    this.before = [];
    this.after = "";
    this.next = "";
    this.onPage = onPage;
    this.text = make("span");
    this.back = make(
      "button",
      { type: "button", class: "tiny", on: { click: () => this.#turn(this.before.pop() ?? "") } },
      "Previous",
    );
    this.forward = make("button", { type: "button", class: "tiny", on: { click: () => this.#advance() } }, "Next");
    this.element = make("div", { class: "pager" }, this.back, this.forward, this.text);
  }

  /** Back to the first page, after a change of the filter. */
  reset() {
    this.before = [];
    this.after = "";
  }

  update(page, noun) {
    this.next = page.after;
    this.back.disabled = this.before.length === 0;
    this.forward.disabled = !page.after;
    const shown = count(page.items.length);
    const all = page.total === null || page.total === undefined ? "" : ` of ${count(page.total)}`;
    setText(this.text, page.text ?? `Page ${this.before.length + 1} · ${shown}${all} ${noun}`);
    this.element.hidden = this.before.length === 0 && !page.after && page.items.length < 10;
  }

  #advance() {
    this.before.push(this.after);
    this.#turn(this.next);
  }

  #turn(after) {
    this.after = after;
    this.onPage();
  }
}
