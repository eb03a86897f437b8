// A payload or result, shown as text, as JSON or in hex.
import { make } from "./dom.js";
import { size } from "./format.js";
import { notice } from "./notice.js";

const MOST_SHOWN = 256 * 1024; // of more, a browser's text layout makes a slow page
const HEX_SHOWN = 16 * 1024;
const LINE = 16;

/** Ways to see bytes; each gives a text, or null where it does not fit. */
const WAYS = {
  Text: (bytes) => decode(bytes),
  JSON: (bytes) => pretty(decode(bytes)),
  Hex: (bytes) => hex(bytes),
};

/** A view of bytes with tabs for the ways, `copy` and `download`. */
export function bytesView(label, bytes, href) {
  const texts = Object.fromEntries(
    Object.entries(WAYS).map(([way, write]) => [way, write(bytes.subarray(0, MOST_SHOWN))]),
  );
  const pre = make("pre", { tabindex: "0", "aria-label": label });
  const tabs = Object.keys(WAYS).map((way) =>
    make(
      "button",
      { type: "button", class: "tiny", disabled: texts[way] === null, on: { click: () => show(way) } },
      way,
    ),
  );
  const copy = make(
    "button",
    { type: "button", class: "quiet tiny", on: { click: () => copyText(pre.textContent) } },
    "Copy",
  );
  const save = make("a", { class: "button quiet tiny", href, download: "" }, "Download");
  const cut = bytes.length > MOST_SHOWN ? `, the first ${size(MOST_SHOWN)} are shown` : "";
  const about = make("span", { class: "soft small" }, size(bytes.length) + cut);

  function show(way) {
    pre.textContent = texts[way];
    pre.className = way === "Hex" ? "hex" : "";
    tabs.forEach((tab) => tab.setAttribute("aria-pressed", String(tab.textContent === way)));
  }

  show(["JSON", "Text", "Hex"].find((way) => texts[way] !== null));
  const head = make(
    "div",
    { class: "card-head" },
    make("h2", {}, label),
    about,
    make("span", { class: "segments push", role: "group", "aria-label": `${label} as` }, ...tabs),
    copy,
    save,
  );
  return make("section", { class: "card bytes", "aria-label": label }, head, pre);
}

function decode(bytes) {
  const cut = bytes.length === MOST_SHOWN; // the cut may have gone through a character
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: cut });
  } catch {
    return null;
  }
}

/** Only objects and lists: a lone number or word reads no better as JSON. */
function pretty(text) {
  if (text === null || !/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
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
    notice("The browser did not allow copying.", { tone: "bad" });
  }
}
