// Keeping what a page shows fresh, at a pace that neither the server nor the browser notices.
import { isAbort } from "./api.js";

const SLACK = 20; // a load that took 0.2 seconds is not repeated before 4 seconds are over

/**
 * Call `load` now and again until the signal aborts; not while the page is out of sight.
 * `onProblem(problem | null)` hears what went wrong, and null when it is right again.
 * Returns a function that loads at once; `load` is told whether it was wanted so, or is only the next turn.
 */
export function keepFresh(load, signal, onProblem, seconds = 2) {
  let timer = 0;
  let running = false;
  let again = false;

  async function turn(wanted = true) {
    clearTimeout(timer);
    if (signal.aborted) return;
    if (running) {
      again = true;
      return;
    }
    running = true;
    const begun = performance.now();
    try {
      await load(wanted);
      if (!signal.aborted) onProblem(null);
    } catch (error) {
      if (!isAbort(error) && !signal.aborted) onProblem(error);
    }
    running = false;
    if (again) {
      again = false;
      turn();
    } else {
      timer = setTimeout(next, Math.max(seconds * 1000, (performance.now() - begun) * SLACK));
    }
  }

  function next() {
    if (document.hidden) timer = setTimeout(next, 1000);
    else turn(false);
  }

  signal.addEventListener("abort", () => clearTimeout(timer));
  turn();
  return turn;
}
