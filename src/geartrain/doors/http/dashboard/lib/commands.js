// Commands to try, with the addresses that this server listens on.
import { get } from "./api.js";
import { command, empty } from "./widgets.js";

const ANY_HOST = ["0.0.0.0", "::"];

const DIAMOND =
  '{"name": "import", "jobs": [{"function": "fetch"}, {"function": "parse", "after": [0]}, ' +
  '{"function": "check", "after": [0]}, {"function": "store", "after": [1, 2]}]}';

/** By kind: with the `gearman` tool, given its options, if it can, and with our own, given the server's URL. */
const COMMANDS = {
  worker: {
    gearman: (options) => `gearman ${options} -w -f reverse -- rev`,
    geartrain: (url) => `geartrain work -s ${url} reverse -- rev`,
  },
  client: {
    gearman: (options) => `echo 'Hello, gears' | gearman ${options} -f reverse`,
    geartrain: (url) => `geartrain submit -s ${url} reverse 'Hello, gears' --wait`,
  },
  background: {
    gearman: (options) => `echo monday | gearman ${options} -b -f report`,
    geartrain: (url) => `geartrain submit -s ${url} report monday`,
  },
  workflow: {
    gearman: null,
    geartrain: (url) => `echo '${DIAMOND}' | geartrain workflow submit -s ${url} -`,
  },
};

let loaded = null; // the addresses do not change while the server runs

/** An empty state with commands of these kinds. */
export function emptyWithCommands(title, text, ...kinds) {
  const element = empty(title, text);
  loaded ??= loadDoors();
  loaded.then((doors) => element.append(...kinds.map((kind) => command(commandOf(kind, doors)))));
  return element;
}

/** Without the right to see the addresses there is still the one of this page. */
async function loadDoors() {
  try {
    return (await get("system")).doors;
  } catch {
    loaded = null;
    return [];
  }
}

function commandOf(kind, doors) {
  const gearman = doors.find((door) => door.protocol === "gearman" && door.address.startsWith("gearman://"));
  if (gearman === undefined || COMMANDS[kind].gearman === null) return COMMANDS[kind].geartrain(location.origin);
  const { host, port } = hostAndPort(gearman.address);
  return COMMANDS[kind].gearman(`-h ${host} -p ${port}`);
}

function hostAndPort(address) {
  const [, host, port] = address.match(/^\w+:\/\/\[?([^\]/]*?)\]?:(\d+)/);
  return { host: ANY_HOST.includes(host) ? location.hostname : host, port };
}
