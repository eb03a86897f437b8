// The server's HTTP API. Every failure becomes a `Problem`, whose message is meant to be shown.
import { logIn } from "./login.js";

const ROOT = "api/v1/";

export class Problem extends Error {
  constructor(status, title, detail) {
    super(detail || title || "The server did not say why.");
    this.name = "Problem";
    this.status = status;
    this.title = title;
  }
}

/** JSON of a path such as `jobs/H%3Alap%3A1`; `query` leaves out what is empty. */
export function get(path, query = {}, signal = undefined) {
  return ask("GET", path + queryString(query), undefined, signal);
}

export function post(path, body) {
  return ask("POST", path, body);
}

export function put(path, body) {
  return ask("PUT", path, body);
}

export function remove(path) {
  return ask("DELETE", path);
}

/** The raw bytes of a payload or result. */
export async function download(path, signal) {
  const answer = await send("GET", path, undefined, signal);
  return new Uint8Array(await answer.arrayBuffer());
}

export function address(path) {
  return ROOT + path;
}

/** Values that already are percent-encoded bytes are given as `{ encoded: "..." }`. */
export function queryString(query) {
  const parts = [];
  for (const [name, value] of Object.entries(query)) {
    if (value === "" || value === null || value === undefined) continue;
    parts.push(`${name}=${value.encoded ?? encodeURIComponent(value)}`);
  }
  return parts.length ? `?${parts.join("&")}` : "";
}

async function ask(method, path, body, signal) {
  const answer = await send(method, path, body, signal);
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

async function send(method, path, body, signal) {
  for (;;) {
    const answer = await attempt(method, path, body, signal);
    if (answer.ok) return answer;
    if (answer.status !== 401) throw await problemOf(answer);
    await logIn(await problemOf(answer));
  }
}

async function attempt(method, path, body, signal) {
  const request = { method, signal, headers: { Accept: "application/json" }, credentials: "same-origin" };
  if (body !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  try {
    return await fetch(ROOT + path, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "No answer", "The server does not answer. Is it running?");
  }
}

/** RFC 9457 problem details; anything else is told by its status. */
async function problemOf(answer) {
  try {
    const told = await answer.json();
    return new Problem(answer.status, told.title, told.detail);
  } catch {
    return new Problem(answer.status, answer.statusText, `The server answered ${answer.status} ${answer.statusText}.`);
  }
}

/** Whether it only says that the page was left. */
export function isAbort(error) {
  return error?.name === "AbortError";
}
