// Pages by the fragment of the address: `#/jobs?state=dead` is the page `jobs` with a query.

/** Parse a fragment. Parts stay percent-encoded, because they may be bytes that are not text. */
export function parse(fragment) {
  const [path, query = ""] = fragment.replace(/^#\/?/, "").split("?", 2);
  const [page, ...parts] = path.split("/");
  const values = {};
  for (const pair of query.split("&").filter(Boolean)) {
    const [name, value = ""] = pair.split("=", 2);
    values[name] = value;
  }
  return { page, parts, query: values };
}

/** The query of a route, for `link`. */
export function encodedQuery(route) {
  return Object.fromEntries(Object.entries(route.query).map(([name, encoded]) => [name, { encoded }]));
}

/** A fragment; values are encoded unless they are `{ encoded }`. Empty ones are omitted. */
export function link(path, query = {}) {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${value.encoded ?? encodeURIComponent(value)}`);
  return `#/${path}${pairs.length ? `?${pairs.join("&")}` : ""}`;
}

/**
 * Open the page of the fragment, now and whenever it changes. A page is
 * `{ title(route), open(root, route, signal) }`; the signal aborts when the page is left. `find(route)` returns the page,
 * or undefined if there is none or this session may not see it.
 */
export function start(root, find, fallback, onChange) {
  let leave = null;

  function go() {
    if (location.hash === "#main") return; // the skip link
    const route = parse(location.hash);
    const page = find(route);
    if (page === undefined) {
      history.replaceState(null, "", `#/${fallback}`);
      go();
      return;
    }
    leave?.abort();
    leave = new AbortController();
    document.title = `${page.title(route)} · Geartrain`;
    onChange(route);
    root.replaceChildren();
    scrollTo(0, 0);
    page.open(root, route, leave.signal);
  }

  addEventListener("hashchange", () => {
    go();
    root.focus({ preventScroll: true }); // so that a screen reader reads the new page
  });
  go();
}

/** Put a changed filter into the address, without a new entry in the history. */
export function replaceQuery(path, query) {
  history.replaceState(null, "", link(path, query));
}
