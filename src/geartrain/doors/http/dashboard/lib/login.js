// The session: its scopes, and the login dialog, which opens once however many requests were refused.
import { field, form, input } from "./dialog.js";

let asking = null;

/** Resolves when the server has accepted a token. The session is a cookie that scripts cannot read. */
export function logIn(problem) {
  asking ??= ask(problem).finally(() => {
    asking = null;
  });
  return asking;
}

function ask(problem) {
  const token = input("token", { type: "password", required: true, autofocus: true, autocomplete: "current-password" });
  return form("Log in", [field("Token", token)], send, {
    yes: "Log in",
    dismissible: false,
    note: problem.message,
  });
}

async function send(data) {
  const answer = await fetch("api/v1/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token: data.get("token").trim() }),
    credentials: "same-origin",
  }).catch(() => null);
  if (answer === null) throw new Error("The server does not respond.");
  if (!answer.ok) throw new Error("Invalid token.");
  applySession(await answer.json());
}

/** Hide what the session may not do; see `style/widgets.css`. */
export async function loadScopes() {
  const answer = await fetch("api/v1/session", { credentials: "same-origin" }).catch(() => null);
  if (answer?.ok) applySession(await answer.json());
}

function applySession(session) {
  // Without any scope, the next request opens the login dialog.
  if (session.scopes.length) document.documentElement.dataset.scopes = session.scopes.join(" ");
  document.getElementById("logout").hidden = !session.locked || session.scopes.length === 0;
}

export async function logOut() {
  await fetch("api/v1/logout", { method: "POST", credentials: "same-origin" }).catch(() => null);
  location.reload();
}
