// The server's events: one stream for the whole page, opened again whenever it breaks.
//
// While the page is out of sight the stream is closed, so that a forgotten tab costs the server nothing.
import { address, get, isAbort } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15000;
const SILENCE = 10000; // the stream says something every second
const OUT_OF_SIGHT = 30000;

const listeners = new Set();
const observers = new Set();
let stream = null;
let state = "connecting";
let pause = FIRST_PAUSE;
let retry = 0;
let watchdog = 0;
let sleeper = 0;
let skew = 0; // server's clock minus ours

/** The server's idea of now, in seconds of the epoch. */
export function now() {
  return Date.now() / 1000 + skew;
}

/** Hear each overview, about once a second, until the signal aborts. */
export function onOverview(listener, signal) {
  subscribe(listeners, listener, signal);
}

/** Hear "connecting", "live" and "reconnecting". */
export function onState(observer, signal) {
  subscribe(observers, observer, signal);
  observer(state);
}

function subscribe(group, listener, signal) {
  group.add(listener);
  signal?.addEventListener("abort", () => group.delete(listener));
}

export function start() {
  document.addEventListener("visibilitychange", changeSight);
  connect();
}

function changeSight() {
  clearTimeout(sleeper);
  if (document.hidden) sleeper = setTimeout(disconnect, OUT_OF_SIGHT);
  else if (stream === null) connect();
}

function connect() {
  disconnect();
  stream = new EventSource(address("events"));
  stream.addEventListener("overview", hear);
  stream.addEventListener("error", lose);
  feedWatchdog();
}

function disconnect() {
  clearTimeout(retry);
  clearTimeout(watchdog);
  stream?.close();
  stream = null;
}

function hear(event) {
  const overview = JSON.parse(event.data);
  skew = overview.now - Date.now() / 1000;
  pause = FIRST_PAUSE;
  feedWatchdog();
  enter("live");
  for (const listener of listeners) listener(overview);
}

// A laptop that slept or a cable that was pulled breaks the stream without telling.
function feedWatchdog() {
  clearTimeout(watchdog);
  watchdog = setTimeout(lose, SILENCE);
}

// The browser would try again by itself, but not after an answer such as 401, and not with a growing pause.
function lose() {
  disconnect();
  enter("reconnecting");
  retry = setTimeout(tryAgain, pause);
  pause = Math.min(pause * 2, LONGEST_PAUSE);
}

async function tryAgain() {
  if (document.hidden) return;
  try {
    await get("overview"); // asks for the token where one is needed
    connect();
  } catch (error) {
    if (!isAbort(error)) lose();
  }
}

function enter(next) {
  if (next === state) return;
  state = next;
  for (const observer of observers) observer(state);
}
