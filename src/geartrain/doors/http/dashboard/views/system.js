// What runs here, and on what.
import { get } from "../lib/api.js";
import { make } from "../lib/dom.js";
import { count, duration, moment, size } from "../lib/format.js";
import { keepFresh } from "../lib/refresh.js";
import { facts, problemBox, tile } from "../lib/widgets.js";
import { counting, Table } from "../lib/table.js";
import { setTime, time } from "../lib/time.js";

export const title = () => "System";

export function open(root, route, signal) {
  const problem = problemBox();
  const tiles = makeTiles();
  const about = make("div");
  const store = make("div");
  const doors = new Table({
    label: "Doors",
    key: (row) => row.address,
    columns: [
      { label: "Protocol", class: "title", value: (row) => row.protocol },
      { label: "Address", class: "mono", value: (row) => row.address },
      counting("Connections", (row) => row.connections),
    ],
  });
  root.append(
    make("div", { class: "head" }, make("h1", {}, "System")),
    problem.element,
    tiles.element,
    make("div", { class: "cards" }, card("Server", about), card("Store", store)),
    make("h2", {}, "Doors"),
    doors.element,
  );
  keepFresh(
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
    uptime: tile("Up for", { tone: "done" }),
    memory: tile("Memory"),
    fsync: tile("On disk within"),
    pending: tile("Not yet on disk"),
    size: tile("Store"),
  };
  const age = make("time");
  all.uptime.value.append(age);
  return {
    element: make("div", { class: "tiles" }, ...Object.values(all).map((one) => one.element)),
    show(system) {
      const kept = system.store;
      all.version.set(system.version, "", system.compiled ? "compiled core" : "plain Python core");
      setTime(age, system.started_at, "age");
      all.memory.set(size(system.memory), "", "resident");
      all.fsync.set(duration(kept.commit_p50), "", `99%: ${duration(kept.commit_p99)}`);
      all.pending.set(count(kept.pending), "", "changes");
      all.size.set(size(kept.size), "", kept.durable ? "survives a crash" : "in memory only");
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
        moment(system.started_at),
        " ",
        make("span", { class: "soft" }, "(", time(system.started_at), ")"),
      ),
    ],
    ["Process", String(system.pid)],
    ["Python", system.python],
    ["Event loop", system.loop],
    ["Platform", system.platform],
    ["Core", system.compiled ? "compiled" : "plain Python"],
  ]);
}

function aboutStore(store) {
  return facts([
    ["Where", make("span", { class: "mono" }, store.url)],
    ["Durable", store.durable ? "yes: acknowledged jobs are on disk" : "no: jobs go away with the process"],
    ["Size", size(store.size)],
    ["Batches written", count(store.commits)],
    ["Time to disk", `half within ${duration(store.commit_p50)}, 99% within ${duration(store.commit_p99)}`],
    ["Not yet on disk", `${count(store.pending)} changes`],
  ]);
}
