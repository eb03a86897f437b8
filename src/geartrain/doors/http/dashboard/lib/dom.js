// Making and changing elements. Data only ever becomes text here, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `make("a", { href: "#/jobs", class: "soft", on: { click } }, "Jobs")`. Null children are left out. */
export function make(tag, properties = {}, ...children) {
  return furnish(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function draw(tag, properties = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), properties, children);
}

function furnish(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name === "on") listen(element, value);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function listen(element, listeners) {
  for (const [event, listener] of Object.entries(listeners)) element.addEventListener(event, listener);
}

/** Change a text only where it differs: an untouched node costs no layout. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Change, or with null take away, an attribute only where it differs. */
export function mark(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

const waiting = new Map();

/** Do it in the next frame, together with everything else that changes; a later call of the same key replaces it. */
export function inFrame(key, change) {
  if (waiting.size === 0) requestAnimationFrame(flush);
  waiting.set(key, change);
}

function flush() {
  const changes = [...waiting.values()];
  waiting.clear();
  for (const change of changes) change();
}
