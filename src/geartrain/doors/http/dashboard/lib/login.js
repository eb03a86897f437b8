// Who is looking: what the session may do, and the box that asks for a token, once, however many requests were refused.
import { field, form, input } from "./dialog.js";

let asking = null;

/** Resolves when the server has accepted a token; it is kept in a cookie that scripts cannot read. */
export function logIn(problem) {
  asking ??= ask(problem).finally(() => {
    asking = null;
  });
  return asking;
}

function ask(problem) {
  const token = input("token", { type: "password", required: true, autofocus: true, autocomplete: "current-password" });
  return form("This server asks for a token", [field("Token", token)], send, {
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
  if (answer === null) throw new Error("The server does not answer.");
  if (!answer.ok) throw new Error("The server does not know this token.");
  know(await answer.json());
}

/** Offer only what the session may do; `style/widgets.css` hides the rest. */
export async function learnScopes() {
  const answer = await fetch("api/v1/session", { credentials: "same-origin" }).catch(() => null);
  if (answer?.ok) know(await answer.json());
}

function know(session) {
  // Without any scope a request will ask for the token first.
  if (session.scopes.length) document.documentElement.dataset.may = session.scopes.join(" ");
  document.getElementById("leave").hidden = !session.locked || session.scopes.length === 0;
}

export async function logOut() {
  await fetch("api/v1/logout", { method: "POST", credentials: "same-origin" }).catch(() => null);
  location.reload();
}
