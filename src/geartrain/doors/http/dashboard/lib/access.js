// What the session may do: its rights, written as `scope` or `scope:pattern`. The server decides; the page only hides.

let rights = null; // [scope, pattern] of each; null: not known yet, so nothing is hidden

/** Take the rights of the session: words such as `submit:mail.*`. */
export function setRights(words) {
  rights = words.map((word) => {
    const colon = word.indexOf(":");
    return colon < 0 ? [word, "*"] : [word.slice(0, colon), word.slice(colon + 1)];
  });
}

/** Whether the scope is granted for this function, or without a name for at least one function. */
export function may(scope, name = undefined) {
  return patternsOf(scope).some((pattern) => name === undefined || matches(pattern, name));
}

/** Whether the scope is granted for all functions, and so for what concerns no single one. */
export function mayEverywhere(scope) {
  return patternsOf(scope).includes("*");
}

function patternsOf(scope) {
  if (rights === null) return ["*"];
  return rights.filter(([granted]) => granted === scope || granted === "admin").map(([, pattern]) => pattern);
}

function matches(pattern, name) {
  const pieces = pattern.split("*").map((piece) => piece.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"));
  return new RegExp(`^${pieces.join(".*")}$`, "s").test(name);
}
