// Creating and updating elements. Data always becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `make("a", { href: "#/jobs", class: "soft", on: { click } }, "Jobs")`. Null children are skipped. */
export function make(tag, properties = {}, ...children) {
  return build(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function draw(tag, properties = {}, ...children) {
  return build(document.createElementNS(SVG, tag), properties, children);
}

function build(element, properties, children) {
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

/** Set the text if it differs: an unchanged node costs no layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Set an attribute, or remove it with null, if it differs. */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

const pending = new Map();

/** Run a change in the next frame, with all others; a later call with the same key replaces it. */
export function inFrame(key, change) {
  if (pending.size === 0) requestAnimationFrame(flush);
  pending.set(key, change);
}

function flush() {
  const changes = [...pending.values()];
  pending.clear();
  for (const change of changes) change();
}
