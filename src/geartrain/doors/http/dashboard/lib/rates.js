// Jobs per second of single functions, from how their counters grew between two looks.
import { shown } from "./text.js";

const SMOOTH = 0.5; // weight of the newest look: steady enough to read, quick enough to follow
const SHORTEST = 0.5; // seconds between looks that say anything

export class Rates {
  constructor() {
    this.seen = new Map();
  }

  learn(items) {
    const at = performance.now() / 1000;
    const seen = new Map();
    for (const item of items) {
      const name = shown(item.name);
      seen.set(name, this.#look(this.seen.get(name), item, at));
    }
    this.seen = seen;
  }

  #look(before, item, at) {
    if (before === undefined) return { at, submitted: item.submitted, completed: item.completed, rates: null };
    const seconds = at - before.at;
    if (seconds < SHORTEST) return before;
    const rates = {};
    for (const field of ["submitted", "completed"]) {
      const fresh = Math.max(0, (item[field] - before[field]) / seconds);
      const mixed = before.rates === null ? fresh : fresh * SMOOTH + before.rates[field] * (1 - SMOOTH);
      rates[field] = mixed < 0.05 && fresh === 0 ? 0 : mixed;
    }
    return { at, submitted: item.submitted, completed: item.completed, rates };
  }

  /** A second, or null after only one look. */
  of(item, field) {
    return this.seen.get(shown(item.name))?.rates?.[field] ?? null;
  }
}
