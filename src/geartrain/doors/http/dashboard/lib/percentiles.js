// Percentiles of wait and run times, as a card.
import { make, setText } from "./dom.js";
import { duration } from "./format.js";

const SHARES = ["p50", "p95", "p99"];
const ROWS = { wait: "Wait time", run: "Run time" };

/** `show({ wait, run })` takes latencies of the API. */
export function percentileCard() {
  const cells = {};
  for (const row of Object.keys(ROWS)) cells[row] = SHARES.map(() => make("span", { class: "figure" }));
  const grid = make(
    "div",
    { class: "percentiles", role: "group", "aria-label": "Percentiles of the last minute" },
    make("span"),
    ...SHARES.map((share) => make("span", { class: "column" }, share)),
    ...Object.entries(ROWS).flatMap(([row, text]) => [make("span", { class: "what" }, text), ...cells[row]]),
  );
  const head = make(
    "div",
    { class: "card-head" },
    make("h2", {}, "Wait and run times"),
    make("span", { class: "soft small push" }, "last minute"),
  );
  return {
    element: make("section", { class: "card" }, head, grid),
    show(latencies) {
      for (const row of Object.keys(ROWS)) {
        SHARES.forEach((share, index) => setText(cells[row][index], duration(latencies[row][share])));
      }
    },
  };
}
