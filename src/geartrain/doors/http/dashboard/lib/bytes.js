// A payload or result, shown as text, as JSON or in hex.
import { make } from "./dom.js";
import { argumentsText } from "./envelope.js";
import { size } from "./format.js";
import { notice } from "./notice.js";
import { parseExact } from "./text.js";

const MOST_SHOWN = 256 * 1024; // bytes; laying out more text makes the page slow
const HEX_SHOWN = 16 * 1024;
const LINE = 16;

/** Formats for bytes; each returns a text, or null if it does not apply. */
const FORMATS = {
  Arguments: (bytes) => argumentsText(bytes),
  Text: (bytes) => decode(bytes),
  JSON: (bytes) => pretty(decode(bytes)),
  Hex: (bytes) => hex(bytes),
};

/** A view of bytes with tabs for the formats, and buttons to copy and download. */
export function bytesView(label, bytes, href) {
  const texts = Object.fromEntries(
    Object.entries(FORMATS).map(([format, write]) => [format, write(bytes.subarray(0, MOST_SHOWN))]),
  );
  const pre = make("pre", { tabindex: "0", "aria-label": label });
  const formats = Object.keys(FORMATS).filter((format) => format !== "Arguments" || texts[format] !== null);
  const tabs = formats.map((format) =>
    make(
      "button",
      { type: "button", class: "tiny", disabled: texts[format] === null, on: { click: () => show(format) } },
      format,
    ),
  );
  const copy = make(
    "button",
    { type: "button", class: "quiet tiny", on: { click: () => copyText(pre.textContent) } },
    "Copy",
  );
  const save = make("a", { class: "button quiet tiny", href, download: "" }, "Download");
  const cut = bytes.length > MOST_SHOWN ? `, first ${size(MOST_SHOWN)} shown` : "";
  const about = make("span", { class: "soft small" }, size(bytes.length) + cut);

  function show(format) {
    pre.textContent = texts[format];
    pre.className = format === "Hex" ? "hex" : "";
    tabs.forEach((tab) => tab.setAttribute("aria-pressed", String(tab.textContent === format)));
  }

  show(["Arguments", "JSON", "Text", "Hex"].find((format) => texts[format] !== null));
  const head = make(
    "div",
    { class: "card-head" },
    make("h2", {}, label),
    about,
    make("span", { class: "segments push", role: "group", "aria-label": `${label} format` }, ...tabs),
    copy,
    save,
  );
  return make("section", { class: "card bytes", "aria-label": label }, head, pre);
}

/** The text of bytes; null if they are not UTF-8. */
export function decode(bytes) {
  const cut = bytes.length === MOST_SHOWN; // the cut may be inside a character
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: cut });
  } catch {
    return null;
  }
}

/** Only objects and arrays: a single value gains nothing from formatting. */
function pretty(text) {
  if (text === null || !/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.stringify(parseExact(text), null, 2);
  } catch {
    return null;
  }
}

function hex(bytes) {
  const lines = [];
  for (let start = 0; start < Math.min(bytes.length, HEX_SHOWN); start += LINE) {
    const part = Array.from(bytes.subarray(start, start + LINE));
    const codes = part
      .map((byte) => byte.toString(16).padStart(2, "0"))
      .join(" ")
      .padEnd(LINE * 3 - 1);
    const signs = part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${start.toString(16).padStart(6, "0")}  ${codes}  ${signs}`);
  }
  return lines.join("\n") + (bytes.length > HEX_SHOWN ? "\n…" : "");
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    notice("Copied.");
  } catch {
    notice("The browser does not allow copying.", { tone: "bad" });
  }
}
