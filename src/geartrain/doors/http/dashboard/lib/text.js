// Texts of the API: a string, or {"base64": "..."} for bytes that are not UTF-8 text.

/** The bytes of a text. */
export function bytesOf(text) {
  if (typeof text === "string") return new TextEncoder().encode(text);
  return Uint8Array.from(atob(text.base64), (character) => character.charCodeAt(0));
}

/** The text of bytes, as the API has it. */
export function textOfBytes(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return { base64: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")) };
  }
}

/** The value of JSON whose numbers are written as they were, where the browser can: not all fit its own numbers. */
export function parseExact(text) {
  return JSON.parse(text, (key, value, context) =>
    typeof value === "number" && context?.source !== undefined && context.source !== String(value)
      ? (JSON.rawJSON?.(context.source) ?? value)
      : value,
  );
}

/** For display: bytes that are not text have \x escapes. */
export function shown(text) {
  if (text === null || text === undefined) return "";
  if (typeof text === "string") return text;
  return Array.from(bytesOf(text), escaped).join("");
}

function escaped(byte) {
  const printable = byte >= 0x20 && byte < 0x7f && byte !== 0x5c;
  return printable ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
}

/** For a URL: percent-encoded bytes. */
export function encoded(text) {
  if (typeof text === "string") return encodeURIComponent(text.toWellFormed?.() ?? text);
  return Array.from(bytesOf(text), (byte) => `%${byte.toString(16).padStart(2, "0").toUpperCase()}`).join("");
}

/** A part of a URL, for display. */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // bytes that are not text stay encoded
  }
}

/** The text of percent-encoded bytes, as the API has it. */
export function textOf(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    const bytes = part.replace(/%([0-9a-f]{2})/gi, (_, code) => String.fromCharCode(parseInt(code, 16)));
    return { base64: btoa(bytes) };
  }
}
