// The session: who it is, its rights, and the login dialog, which opens once however many requests were refused.
import { mayEverywhere, setRights } from "./access.js";
import { field, form, input } from "./dialog.js";
import { setText } from "./dom.js";

let asking = null;
let shown = null; // the session that the page was made for

/** The session, as the server described it last; null if it did not answer. */
export function session() {
  return shown;
}

/** Resolves when the server has accepted a token. The session is a cookie that scripts cannot read. */
export function logIn(problem) {
  asking ??= ask(problem.message, false).finally(() => {
    asking = null;
  });
  return asking;
}

/** Log in although the page can be used without, for more rights. */
export async function logInForMore() {
  if (await ask("A token of a user with more rights.", true)) location.reload();
}

function ask(note, dismissible) {
  const token = input("token", { type: "password", required: true, autofocus: true, autocomplete: "current-password" });
  return form("Log in", [field("Token", token)], send, { yes: "Log in", dismissible, note });
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
  const session = await answer.json();
  if (session.scopes.length === 0) throw new Error("This token has no rights.");
  // The page was made for other rights: its pages and buttons have to be chosen anew.
  if (shown?.scopes.length && String(shown.rights) !== String(session.rights)) location.reload();
  applySession(session);
}

/** Learn what this session may do, and ask for a token if that is nothing. */
export async function openSession() {
  const answer = await fetch("api/v1/session", { credentials: "same-origin" }).catch(() => null);
  if (!answer?.ok) return;
  const session = await answer.json();
  if (session.scopes.length) applySession(session);
  else await logIn({ message: "This server requires a token." });
}

/** Hide what the session may not do; see `style/widgets.css`. */
function applySession(session) {
  shown = session;
  setRights(session.rights);
  const root = document.documentElement;
  root.dataset.scopes = session.scopes.join(" ");
  root.toggleAttribute("data-limited", !mayEverywhere("read"));
  document.getElementById("login").hidden = !session.locked || session.logged_in;
  document.getElementById("logout").hidden = !session.logged_in;
  const user = document.getElementById("user");
  user.hidden = !session.user;
  setText(user, session.user);
}

export async function logOut() {
  await fetch("api/v1/logout", { method: "POST", credentials: "same-origin" }).catch(() => null);
  location.reload();
}
