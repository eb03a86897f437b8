// Automatic refresh of a page.
import { isAbort } from "./api.js";

const SLACK = 20; // a load that took 0.2 seconds is repeated after 4 seconds at the earliest
const LONGEST = 15_000; // milliseconds between two loads, if the server is slow

/**
 * Call `load` now and repeatedly until the signal aborts; not while the page is hidden.
 * `onProblem(problem | null)` gets each error, and null after a success.
 * Returns a function that loads at once. `load(requested)` gets false for an automatic refresh.
 */
export function autoRefresh(load, signal, onProblem, seconds = 2) {
  let timer = 0;
  let running = false;
  let again = false;

  async function run(requested = true) {
    clearTimeout(timer);
    if (signal.aborted) return;
    if (running) {
      again = true;
      return;
    }
    running = true;
    const begun = performance.now();
    try {
      await load(requested);
      if (!signal.aborted) onProblem(null);
    } catch (error) {
      if (!isAbort(error) && !signal.aborted) onProblem(error);
    }
    running = false;
    if (again) {
      again = false;
      run();
    } else {
      const pause = Math.min((performance.now() - begun) * SLACK, LONGEST);
      timer = setTimeout(next, Math.max(seconds * 1000, pause));
    }
  }

  function next() {
    if (document.hidden) timer = setTimeout(next, 1000);
    else run(false);
  }

  signal.addEventListener("abort", () => clearTimeout(timer));
  run();
  return run;
}
