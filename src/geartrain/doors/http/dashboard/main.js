// The frame around the pages: navigation, live state, theme, keys.
import { make, mark, say } from "./lib/dom.js";
import { count, plural, rate } from "./lib/format.js";
import * as keyboard from "./lib/keyboard.js";
import { learnScopes, logOut } from "./lib/login.js";
import * as live from "./lib/live.js";
import * as router from "./lib/router.js";
import { askForJob } from "./lib/submit.js";
import { keepTelling } from "./lib/time.js";
import * as dead from "./views/dead.js";
import * as functions from "./views/functions.js";
import * as jobs from "./views/jobs.js";
import * as overview from "./views/overview.js";
import * as schedules from "./views/schedules.js";
import * as system from "./views/system.js";
import * as workers from "./views/workers.js";

const PAGES = { overview, functions, jobs, dead, workers, schedules, system };

/** In the order of the navigation: page, name, key after g, and what to count of the overview. */
const PLACES = [
  ["overview", "Overview", "o", null],
  ["functions", "Functions", "f", "functions"],
  ["jobs", "Jobs", "j", (now) => now.queued + now.running + now.scheduled],
  ["dead", "Dead jobs", "d", "dead"],
  ["workers", "Workers", "w", "workers"],
  ["schedules", "Schedules", "s", null],
  ["system", "System", "y", null],
];

const GO = Object.fromEntries(PLACES.map(([page, name, key]) => [key, [`#/${page}`, name]]));
const KEYS = {
  "/": ["Search on this page", keyboard.focusSearch],
  n: ["Submit a job", () => askForJob()],
  j: ["Next row", () => keyboard.stepRow(1)],
  k: ["Previous row", () => keyboard.stepRow(-1)],
  t: ["Light, dark, or as the system", changeTheme],
  "?": ["This help", () => keyboard.showHelp(GO, KEYS)],
};

const links = new Map();
const counts = new Map();

function buildNavigation() {
  const items = PLACES.map(([page, name]) => {
    const number = make("span", { class: "count" });
    const anchor = make("a", { href: `#/${page}` }, name, " ", number);
    links.set(page, anchor);
    counts.set(page, number);
    return make("li", {}, anchor);
  });
  document.getElementById("nav").append(make("ul", {}, ...items));
}

function showPlace(route) {
  for (const [page, anchor] of links) mark(anchor, "aria-current", page === route.page ? "page" : null);
  links.get(route.page)?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function showNumbers(now) {
  for (const [page, , , what] of PLACES) {
    const number = what === null ? 0 : typeof what === "string" ? now[what] : what(now);
    say(counts.get(page), number ? count(number) : "");
  }
  mark(counts.get("dead"), "data-tone", now.dead ? "bad" : null);
  const flow = `${rate(now.submitted_rate)} in/s · ${rate(now.completed_rate)} out/s`;
  say(
    document.getElementById("pulse"),
    `${flow} · ${count(now.queued)} queued · ${count(now.running)} running · ${plural(now.workers, "worker")}`,
  );
}

const STATES = { connecting: "connecting", live: "live", reconnecting: "reconnecting…" };

function showState(state) {
  document.getElementById("live").dataset.state = state;
  say(document.getElementById("live-text"), STATES[state]);
}

function changeTheme() {
  window.geartrainTheme.next();
  showTheme();
}

function showTheme() {
  const theme = window.geartrainTheme.current;
  const button = document.getElementById("theme");
  say(button, `Theme: ${theme}`);
  mark(button, "aria-label", `Theme: ${theme}. Change it`);
}

function start() {
  buildNavigation();
  showTheme();
  document.getElementById("theme").addEventListener("click", changeTheme);
  document.getElementById("help").addEventListener("click", () => keyboard.showHelp(GO, KEYS));
  document.getElementById("submit").addEventListener("click", () => askForJob());
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment names the page
    document.getElementById("main").focus();
  });
  document.getElementById("leave").addEventListener("click", logOut);
  live.onState(showState);
  live.onOverview((now) => requestAnimationFrame(() => showNumbers(now)));
  keyboard.start(GO, KEYS);
  keepTelling();
  router.start(document.getElementById("main"), PAGES, "overview", showPlace);
  live.start();
  learnScopes();
}

start();
