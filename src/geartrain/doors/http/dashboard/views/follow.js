// The event stream of one job: refreshes the page at each event, and shows data and warnings of the worker.
import { address } from "../lib/api.js";
import { make } from "../lib/dom.js";
import { timeOfDay } from "../lib/format.js";
import { now } from "../lib/live.js";
import { shown } from "../lib/text.js";

const LINES_KEPT = 500;
const LIVE = ["scheduled", "blocked", "queued", "running"];

/** Without the stream the page still refreshes every two seconds. */
export class Follower {
  constructor(handle, refresh, signal) {
    this.handle = handle;
    this.refresh = refresh;
    this.signal = signal;
    this.stream = null;
    this.log = make("pre", { tabindex: "0", "aria-label": "Output while running" });
    const head = make("div", { class: "card-head" }, make("h2", {}, "Output while running"));
    this.element = make("section", { class: "card bytes", hidden: true }, head, this.log);
    signal.addEventListener("abort", () => this.stream?.close());
  }

  /**
   * Open the stream while the job can have events. A foreground job is not followed: it exists only as long as a
   * client waits for it, and this page must not count as one.
   */
  follow(job) {
    if (this.stream === null && job.background && LIVE.includes(job.state) && !this.signal.aborted) this.#connect();
  }

  #connect() {
    this.stream = new EventSource(address(`jobs/${this.handle}/events`));
    for (const name of ["progress", "done", "failed"]) this.stream.addEventListener(name, () => this.refresh());
    for (const name of ["data", "warning"]) {
      this.stream.addEventListener(name, (event) => {
        this.element.hidden = false;
        write(this.log, `${timeOfDay(now())} ${name}: ${shown(JSON.parse(event.data).data)}\n`);
      });
    }
    // The stream ends with the job; a dead job may be retried.
    this.stream.addEventListener("error", () => {
      this.stream.close();
      this.stream = null;
    });
  }
}

function write(log, line) {
  log.append(line);
  while (log.childNodes.length > LINES_KEPT) log.firstChild.remove();
  log.scrollTop = log.scrollHeight;
}
