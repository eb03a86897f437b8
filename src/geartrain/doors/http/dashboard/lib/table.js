// A table whose rows are kept and changed in place: a refresh touches only the cells that differ.
import { make, mark, say } from "./dom.js";
import { count } from "./format.js";

/**
 * `columns`: `{ label, value(row), fill?(cell, row), class?, sort? }`. `value` is the text, and for a column with
 * `fill` what decides whether the cell has to be filled again. `key(row)` tells rows apart.
 */
export class Table {
  constructor({ label, columns, key, onSort = null }) {
    this.columns = columns;
    this.key = key;
    this.rows = new Map();
    this.order = "";
    this.heads = columns.map((column) => head(column, onSort));
    this.body = make("tbody", { role: "rowgroup" });
    const header = make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...this.heads));
    // Roles are said aloud, because a table that is laid out as cards loses them.
    const table = make("table", { role: "table", "aria-label": label }, header, this.body);
    this.element = make("div", { class: "table-wrap cardlike" }, table);
  }

  /** Show these rows, in this order. */
  update(items) {
    const keys = items.map((item) => String(this.key(item)));
    const kept = new Set(keys);
    for (const [key, row] of this.rows) {
      if (!kept.has(key)) {
        row.element.remove();
        this.rows.delete(key);
      }
    }
    items.forEach((item, index) => this.#show(keys[index], item));
    const order = keys.join("\n");
    if (order !== this.order) this.#arrange(keys);
    this.order = order;
  }

  sorted(by, direction) {
    this.columns.forEach((column, index) => {
      mark(this.heads[index], "aria-sort", column.sort && column.sort === by ? direction : null);
    });
  }

  #show(key, item) {
    let row = this.rows.get(key);
    if (row === undefined) {
      row = newRow(this.columns);
      this.rows.set(key, row);
    }
    row.item = item;
    this.columns.forEach((column, index) => fillCell(column, row, index));
  }

  // Moves only what is out of place, so that a new row on top does not touch a hundred others.
  #arrange(keys) {
    let place = this.body.firstChild;
    for (const key of keys) {
      const { element } = this.rows.get(key);
      if (element === place) place = place.nextSibling;
      else this.body.insertBefore(element, place);
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
      : column.label || make("span", { class: "unseen" }, "Actions");
  return make(
    "th",
    { role: "columnheader", scope: "col", class: column.class === "number" ? "number" : null },
    content,
  );
}

function newRow(columns) {
  const cells = columns.map((column) => make("td", { role: "cell", class: column.class, "data-label": column.label }));
  const row = { element: make("tr", { role: "row" }, ...cells), cells, shown: [], item: null };
  // Listeners of a cell are made once and have to find the row's present data.
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
    say(cell, value);
    if (column.title) mark(cell, "title", value);
  }
}

/** A column of counts, whose zeros are quiet. */
export function counting(label, of, write = count, more = {}) {
  return {
    label,
    class: "number",
    value: (row) => write(of(row)),
    fill(cell, row) {
      say(cell, write(of(row)));
      cell.classList.toggle("zero", !of(row));
    },
    ...more,
  };
}

/** Pages of a list that is asked for with cursors: `pager.after` is where the page begins. */
export class Pager {
  constructor(onTurn) {
    this.before = [];
    this.after = "";
    this.next = "";
    this.onTurn = onTurn;
    this.text = make("span");
    this.back = make(
      "button",
      { type: "button", class: "tiny", on: { click: () => this.#turn(this.before.pop() ?? "") } },
      "Previous",
    );
    this.forth = make("button", { type: "button", class: "tiny", on: { click: () => this.#advance() } }, "Next");
    this.element = make("div", { class: "pager" }, this.back, this.forth, this.text);
  }

  /** Back to the first page, because something else is listed. */
  reset() {
    this.before = [];
    this.after = "";
  }

  update(page, noun) {
    this.next = page.after;
    this.back.disabled = this.before.length === 0;
    this.forth.disabled = !page.after;
    const shown = count(page.items.length);
    const all = page.total === null || page.total === undefined ? "" : ` of ${count(page.total)}`;
    say(this.text, `Page ${this.before.length + 1} · ${shown}${all} ${noun}`);
    this.element.hidden = this.before.length === 0 && !page.after && page.items.length < 10;
  }

  #advance() {
    this.before.push(this.after);
    this.#turn(this.next);
  }

  #turn(after) {
    this.after = after;
    this.onTurn();
  }
}
