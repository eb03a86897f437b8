// Jobs per second of each function, from the growth of its counters between two samples.
import { shown } from "./text.js";

const SMOOTH = 0.5; // weight of the newest sample
const SHORTEST = 0.5; // seconds between samples; less is too noisy

export class Rates {
  constructor() {
    this.samples = new Map();
  }

  sample(items) {
    const at = performance.now() / 1000;
    const samples = new Map();
    for (const item of items) {
      const name = shown(item.name);
      samples.set(name, this.#sample(this.samples.get(name), item, at));
    }
    this.samples = samples;
  }

  #sample(before, item, at) {
    if (before === undefined) return { at, submitted: item.submitted, completed: item.completed, rates: null };
    const seconds = at - before.at;
    if (seconds < SHORTEST) return before;
    const rates = {};
    for (const field of ["submitted", "completed"]) {
      const newest = Math.max(0, (item[field] - before[field]) / seconds);
      const mixed = before.rates === null ? newest : newest * SMOOTH + before.rates[field] * (1 - SMOOTH);
      rates[field] = mixed < 0.05 && newest === 0 ? 0 : mixed;
    }
    return { at, submitted: item.submitted, completed: item.completed, rates };
  }

  /** Per second; null after only one sample. */
  of(item, field) {
    return this.samples.get(shown(item.name))?.rates?.[field] ?? null;
  }
}
