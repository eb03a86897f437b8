// Requests to the HTTP API. Every failure is a `Problem` with a message for the user.
import { logIn } from "./login.js";

const ROOT = "api/v1/";

export class Problem extends Error {
  constructor(status, title, detail) {
    super(detail || title || "The server gave no reason.");
    this.name = "Problem";
    this.status = status;
    this.title = title;
  }
}

/** JSON of a path such as `jobs/H%3Alap%3A1`; empty values of `query` are omitted. */
export function get(path, query = {}, signal = undefined) {
  return ask("GET", path + queryString(query), undefined, signal);
}

export function post(path, body) {
  return ask("POST", path, body);
}

export function put(path, body) {
  return ask("PUT", path, body);
}

export function patch(path, body) {
  return ask("PATCH", path, body);
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

/** Values that are percent-encoded already are `{ encoded: "..." }`. */
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
    throw new Problem(0, "No answer", "The server does not respond. Is it running?");
  }
}

/** The problem details (RFC 9457) of an answer; without them, its status. */
async function problemOf(answer) {
  try {
    const details = await answer.json();
    return new Problem(answer.status, details.title, details.detail);
  } catch {
    return new Problem(answer.status, answer.statusText, `The server answered ${answer.status} ${answer.statusText}.`);
  }
}

/** Whether the request was aborted because the page was left. */
export function isAbort(error) {
  return error?.name === "AbortError";
}
