// Payloads of tasks: the arguments of the call, without the envelope around them (`app/envelope.py`).

const FIELDS = new Set(["v", "args", "kwargs", "id", "wait", "tried", "meta"]);
const VERSION = 1;
// The beginning of an envelope up to its arguments, in a payload that was cut for a list.
const CUT = /^\{"v": ?1, ?(?:"id": ?"[^"]*", ?)?"args": ?\[/;

/** The envelope in a text of JSON, or null. */
export function envelopeOf(text) {
  if (text === null || !text.trimStart().startsWith("{")) return null;
  try {
    const value = JSON.parse(text);
    const known = Object.keys(value).every((key) => FIELDS.has(key));
    const isCall = Array.isArray(value.args) && typeof (value.kwargs ?? {}) === "object";
    return known && isCall && value.v === VERSION ? value : null;
  } catch {
    return null;
  }
}

/** The arguments as in a call, one to a line; null if the text is not an envelope. */
export function argumentsText(text) {
  const envelope = envelopeOf(text);
  if (envelope === null) return null;
  const parts = argumentsOf(envelope, (value) => JSON.stringify(value, null, 2));
  return parts.length ? parts.join(",\n") : "no arguments";
}

/** The same in one line, also of the beginning of an envelope; null if it is none. */
export function argumentsPreview(text) {
  const envelope = envelopeOf(text);
  if (envelope !== null) return argumentsOf(envelope, JSON.stringify).join(", ") || "no arguments";
  return CUT.test(text) ? text.replace(CUT, "") : null;
}

function argumentsOf({ args, kwargs = {} }, write) {
  return [...args.map(write), ...Object.entries(kwargs).map(([name, value]) => `${name} = ${write(value)}`)];
}
