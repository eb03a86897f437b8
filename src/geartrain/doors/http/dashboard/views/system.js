// The server, its store and its listening addresses.
import { get } from "../lib/api.js";
import { make } from "../lib/dom.js";
import { count, dateTime, duration, plural, size } from "../lib/format.js";
import { autoRefresh } from "../lib/refresh.js";
import { facts, problemBox, tile } from "../lib/widgets.js";
import { numberColumn, Table } from "../lib/table.js";
import { setTime, time } from "../lib/time.js";

export const title = () => "System";

export function open(root, route, signal) {
  const problem = problemBox();
  const tiles = makeTiles();
  const about = make("div");
  const store = make("div");
  const doors = new Table({
    label: "Listening addresses",
    key: (row) => row.address,
    columns: [
      { label: "Protocol", class: "title", value: (row) => row.protocol },
      { label: "Address", class: "mono", value: (row) => row.address },
      numberColumn("Connections", (row) => row.connections),
    ],
  });
  root.append(
    make("div", { class: "head" }, make("h1", {}, "System")),
    problem.element,
    tiles.element,
    make("div", { class: "cards" }, card("Server", about), card("Store", store)),
    make("h2", {}, "Listening addresses"),
    doors.element,
  );
  autoRefresh(
    async () => {
      const system = await get("system", {}, signal);
      tiles.show(system);
      about.replaceChildren(aboutServer(system));
      store.replaceChildren(aboutStore(system.store));
      doors.update(system.doors);
    },
    signal,
    problem.show,
    3,
  );
}

function card(name, content) {
  return make("section", { class: "card" }, make("div", { class: "card-head" }, make("h2", {}, name)), content);
}

function makeTiles() {
  const all = {
    version: tile("Version"),
    uptime: tile("Uptime", { tone: "done" }),
    memory: tile("Memory"),
    fsync: tile("Commit time"),
    pending: tile("Pending writes"),
    size: tile("Store"),
  };
  const age = make("time");
  all.uptime.value.append(age);
  return {
    element: make("div", { class: "tiles" }, ...Object.values(all).map((one) => one.element)),
    show(system) {
      const store = system.store;
      all.version.set(system.version, "", system.compiled ? "compiled core" : "pure Python core");
      setTime(age, system.started_at, "age");
      all.memory.set(size(system.memory), "", "resident");
      all.fsync.set(duration(store.commit_p50), "", `p99 ${duration(store.commit_p99)}`);
      all.pending.set(count(store.pending), "", "not yet on disk");
      all.size.set(size(store.size), "", store.durable ? "durable" : "in memory only");
    },
  };
}

function aboutServer(system) {
  return facts([
    [
      "Started",
      make(
        "span",
        {},
        dateTime(system.started_at),
        " ",
        make("span", { class: "soft" }, "(", time(system.started_at), ")"),
      ),
    ],
    ["Process", String(system.pid)],
    ["Python", system.python],
    ["Event loop", system.loop],
    ["Platform", system.platform],
    ["Core", system.compiled ? "compiled" : "pure Python"],
  ]);
}

function aboutStore(store) {
  return facts([
    ["URL", make("span", { class: "mono" }, store.url)],
    ["Durable", store.durable ? "yes: acknowledged jobs are on disk" : "no: jobs are lost when the server stops"],
    ["Size", size(store.size)],
    ["Commits", count(store.commits)],
    ["Commit time", `p50 ${duration(store.commit_p50)}, p99 ${duration(store.commit_p99)}`],
    ["Pending writes", plural(store.pending, "change")],
  ]);
}
