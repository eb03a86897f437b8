// Payloads of tasks: the arguments of the call, without the envelope around them (`app/envelope.py`).
import { decodeCbor } from "./cbor.js";
import { decodeMsgpack } from "./msgpack.js";
import { bytesOf, parseExact, shown } from "./text.js";

const FIELDS = new Set(["v", "args", "kwargs", "id", "wait", "tried", "meta"]);
const VERSION = 1;
// The beginning of an envelope up to its arguments, in a payload that was cut for a list.
const CUT = /^\{"v": ?1, ?(?:"id": ?"[^"]*", ?)?"args": ?\[/;

/** By the first byte of an object with a few fields: the formats that tasks have by name. */
const DECODERS = [
  [(byte) => byte === 0x7b, (bytes) => parseExact(new TextDecoder("utf-8", { fatal: true }).decode(bytes))],
  [(byte) => byte > 0x80 && byte < 0x90, decodeMsgpack],
  [(byte) => byte > 0xa0 && byte <= 0xbf, decodeCbor],
];

/** The envelope in the bytes of a payload, or null. */
export function envelopeOf(bytes) {
  const decode = DECODERS.find(([fits]) => fits(bytes[0]))?.[1];
  if (decode === undefined) return null;
  try {
    const value = decode(bytes);
    const known = Object.keys(value).every((key) => FIELDS.has(key));
    const isCall = Array.isArray(value.args) && typeof (value.kwargs ?? {}) === "object";
    return known && isCall && value.v === VERSION ? value : null;
  } catch {
    return null;
  }
}

/** The arguments as in a call, one to a line; null if the bytes are not an envelope. */
export function argumentsText(bytes) {
  const envelope = envelopeOf(bytes);
  if (envelope === null) return null;
  const parts = argumentsOf(envelope, (value) => JSON.stringify(value, null, 2));
  return parts.length ? parts.join(",\n") : "no arguments";
}

/** The same in one line, of a text of the API that may be cut; null if it is no envelope. */
export function argumentsPreview(payload) {
  const envelope = envelopeOf(bytesOf(payload));
  if (envelope !== null) return argumentsOf(envelope, (value) => JSON.stringify(value)).join(", ") || "no arguments";
  const text = shown(payload);
  return CUT.test(text) ? text.replace(CUT, "") : null;
}

function argumentsOf({ args, kwargs }, write) {
  const named = Object.entries(kwargs ?? {});
  return [...args.map(write), ...named.map(([name, value]) => `${name} = ${write(value)}`)];
}
