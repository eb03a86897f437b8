// The frame around the pages: navigation, connection state, theme, keyboard shortcuts.
import { may, mayEverywhere } from "./lib/access.js";
import { make, setAttribute, setText } from "./lib/dom.js";
import { failedJobs } from "./lib/failedjobs.js";
import { count, plural, rate } from "./lib/format.js";
import * as keyboard from "./lib/keyboard.js";
import { logInForMore, logOut, openSession } from "./lib/login.js";
import * as live from "./lib/live.js";
import * as router from "./lib/router.js";
import { askForJob } from "./lib/submit.js";
import { keepTimesCurrent } from "./lib/time.js";
import * as account from "./views/account.js";
import * as audit from "./views/audit.js";
import * as failures from "./views/failures.js";
import * as functions from "./views/functions.js";
import * as jobs from "./views/jobs.js";
import * as overview from "./views/overview.js";
import * as schedules from "./views/schedules.js";
import * as servers from "./views/servers.js";
import * as system from "./views/system.js";
import * as workers from "./views/workers.js";
import * as workflows from "./views/workflows.js";

/** Addresses of earlier versions that someone may have saved. */
const dead = {
  title: failures.title,
  open: (root, route) => location.replace(router.link("failures", { ...router.encodedQuery(route), state: "dead" })),
};
const PAGES = {
  account,
  overview,
  functions,
  jobs,
  workflows,
  failures,
  dead,
  workers,
  schedules,
  servers,
  audit,
  system,
};

/** The navigation: page, name, key after g, and the count shown beside it (a field of the overview, or a function). */
const NAVIGATION = [
  ["overview", "Overview", "o", null],
  ["functions", "Functions", "f", "functions"],
  ["jobs", "Jobs", "j", (now) => now.queued + now.running + now.scheduled + now.blocked],
  ["workflows", "Workflows", "l", null],
  ["failures", "Failed and dead", "d", (now) => now.dead + failedJobs.count],
  ["workers", "Workers", "w", "workers"],
  ["schedules", "Schedules", "s", null],
  ["servers", "Servers", "v", "servers"],
  ["audit", "Audit log", "a", null],
  ["system", "System", "y", null],
];

/** Who may only submit may look at jobs whose handles are known. */
const jobByHandle = (route) => may("read") || (may("submit") && Boolean(route.parts[0]));

/** Which pages a session may open; those that are not here are for everybody who may read something. */
const ALLOWED = {
  account: () => true,
  jobs: jobByHandle,
  workflows: jobByHandle,
  audit: () => mayEverywhere("admin"),
  servers: () => mayEverywhere("read"),
  system: () => mayEverywhere("read"),
};

const CLUSTER_ONLY = "cluster-only"; // the class of what is shown in a cluster alone

const GO = {}; // filled for the pages that the session may open
const KEYS = {
  "/": ["Search this page", keyboard.focusSearch],
  n: ["Submit a job", () => may("submit") && askForJob()],
  j: ["Next row", () => keyboard.stepRow(1)],
  k: ["Previous row", () => keyboard.stepRow(-1)],
  x: ["Select the row", keyboard.toggleRow],
  t: ["Switch the theme: system, light, dark", changeTheme],
  "?": ["Show keyboard shortcuts", () => keyboard.showHelp(GO, KEYS)],
};

const links = new Map();
const counts = new Map();

function isAllowed(route) {
  return ALLOWED[route.page]?.(route) ?? may("read");
}

function find(route) {
  return isAllowed(route) ? PAGES[route.page] : undefined;
}

function buildNavigation() {
  const allowed = NAVIGATION.filter(([page]) => isAllowed({ page, parts: [] }));
  const items = allowed.map(([page, name, key]) => {
    GO[key] = [`#/${page}`, name];
    const number = make("span", { class: "count" });
    const anchor = make("a", { href: `#/${page}` }, name, " ", number);
    links.set(page, anchor);
    counts.set(page, number);
    return make("li", { class: page === "servers" ? CLUSTER_ONLY : null }, anchor);
  });
  document.getElementById("nav").append(make("ul", {}, ...items));
}

function showCurrentPage(route) {
  for (const [page, anchor] of links) setAttribute(anchor, "aria-current", page === route.page ? "page" : null);
  links.get(route.page)?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function showCounts(now) {
  for (const [page, , , counted] of NAVIGATION) {
    const number = counted === null ? 0 : typeof counted === "string" ? now[counted] : counted(now);
    if (counts.has(page)) setText(counts.get(page), number ? count(number) : "");
  }
  setAttribute(counts.get("failures"), "data-tone", now.dead + failedJobs.count ? "bad" : null);
  const flow = `${rate(now.submitted_rate)} submitted/s · ${rate(now.completed_rate)} completed/s`;
  setText(
    document.getElementById("summary"),
    `${flow} · ${count(now.queued)} queued · ${count(now.running)} running · ${plural(now.workers, "worker")}`,
  );
}

/** Where there are several servers, columns and pages that tell them apart are shown, and who has not answered is named. */
function showCluster(now) {
  document.documentElement.toggleAttribute("data-cluster", now.servers > 1);
  const banner = document.getElementById("unanswered");
  banner.hidden = now.unanswered.length === 0;
  if (!banner.hidden) setText(banner, `No answer from ${now.unanswered.join(", ")}: what it has is missing here.`);
}

const STATES = { connecting: "connecting", live: "live", reconnecting: "reconnecting…" };

function showState(state) {
  document.getElementById("live").dataset.state = state;
  setText(document.getElementById("live-text"), STATES[state]);
}

function changeTheme() {
  window.geartrainTheme.next();
  showTheme();
}

function showTheme() {
  const theme = window.geartrainTheme.current;
  const button = document.getElementById("theme");
  setText(button, `Theme: ${theme}`);
  setAttribute(button, "aria-label", `Theme: ${theme}. Switch the theme`);
}

async function start() {
  showTheme();
  document.getElementById("theme").addEventListener("click", changeTheme);
  document.getElementById("help").addEventListener("click", () => keyboard.showHelp(GO, KEYS));
  document.getElementById("submit").addEventListener("click", () => askForJob());
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment names the page
    document.getElementById("main").focus();
  });
  document.getElementById("login").addEventListener("click", logInForMore);
  document.getElementById("logout").addEventListener("click", logOut);
  live.onState(showState);
  live.onOverview((now) => {
    requestAnimationFrame(() => {
      showCounts(now);
      showCluster(now);
    });
    failedJobs.update(now, showCounts);
  });
  await openSession();
  buildNavigation();
  keyboard.start(GO, KEYS);
  keepTimesCurrent();
  router.start(document.getElementById("main"), find, may("read") ? "overview" : "account", showCurrentPage);
  if (may("read")) live.start();
}

start();
