// The server's event stream: one for the whole page, reopened whenever it breaks.
//
// The stream is closed while the page is hidden, so that a background tab costs the server nothing.
import { address, get, isAbort } from "./api.js";

// Milliseconds.
const FIRST_DELAY = 1000;
const LONGEST_DELAY = 15000;
const SILENCE = 10000; // the server sends an event every second
const HIDDEN = 30000;

const listeners = new Set();
const observers = new Set();
let stream = null;
let state = "connecting";
let delay = FIRST_DELAY;
let retry = 0;
let watchdog = 0;
let hideTimer = 0;
let skew = 0; // seconds that the server's clock is ahead of the browser's

/** The server's time, in epoch seconds. */
export function now() {
  return Date.now() / 1000 + skew;
}

/** Call the listener with each overview, about once a second, until the signal aborts. */
export function onOverview(listener, signal) {
  subscribe(listeners, listener, signal);
}

/** Call the observer with "connecting", "live" or "reconnecting". */
export function onState(observer, signal) {
  subscribe(observers, observer, signal);
  observer(state);
}

function subscribe(group, listener, signal) {
  group.add(listener);
  signal?.addEventListener("abort", () => group.delete(listener));
}

export function start() {
  document.addEventListener("visibilitychange", visibilityChanged);
  connect();
}

function visibilityChanged() {
  clearTimeout(hideTimer);
  if (document.hidden) hideTimer = setTimeout(disconnect, HIDDEN);
  else if (stream === null) connect();
}

function connect() {
  disconnect();
  stream = new EventSource(address("events"));
  stream.addEventListener("overview", receive);
  stream.addEventListener("error", disconnected);
  restartWatchdog();
}

function disconnect() {
  clearTimeout(retry);
  clearTimeout(watchdog);
  stream?.close();
  stream = null;
}

function receive(event) {
  const overview = JSON.parse(event.data);
  skew = overview.now - Date.now() / 1000;
  delay = FIRST_DELAY;
  restartWatchdog();
  setState("live");
  for (const listener of listeners) listener(overview);
}

// After a suspend or a network failure the browser reports no error.
function restartWatchdog() {
  clearTimeout(watchdog);
  watchdog = setTimeout(disconnected, SILENCE);
}

// The browser would reconnect by itself, but not after an answer such as 401, and not with a growing delay.
function disconnected() {
  disconnect();
  setState("reconnecting");
  retry = setTimeout(reconnect, delay);
  delay = Math.min(delay * 2, LONGEST_DELAY);
}

async function reconnect() {
  if (document.hidden) return;
  try {
    await get("overview"); // asks for a token if one is needed
    connect();
  } catch (error) {
    if (!isAbort(error)) disconnected();
  }
}

function setState(next) {
  if (next === state) return;
  state = next;
  for (const observer of observers) observer(state);
}
