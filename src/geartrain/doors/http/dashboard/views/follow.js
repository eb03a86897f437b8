// Following a job while it runs: each event is a reason to look again, and what the worker sends meanwhile is shown.
import { address } from "../lib/api.js";
import { make } from "../lib/dom.js";
import { timeOfDay } from "../lib/format.js";
import { now } from "../lib/live.js";
import { shown } from "../lib/text.js";

const LINES_KEPT = 500;
const LIVE = ["scheduled", "queued", "running"];

/** Without the stream the page still looks every two seconds. */
export class Follower {
  constructor(handle, refresh, signal) {
    this.handle = handle;
    this.refresh = refresh;
    this.signal = signal;
    this.stream = null;
    this.log = make("pre", { tabindex: "0", "aria-label": "Sent while it runs" });
    const head = make("div", { class: "card-head" }, make("h2", {}, "Sent while it runs"));
    this.element = make("section", { class: "card bytes", hidden: true }, head, this.log);
    signal.addEventListener("abort", () => this.stream?.close());
  }

  /**
   * Listen while there is something to hear. A foreground job is not followed: it lives only as long as somebody
   * waits for it, and looking at it must not count as that.
   */
  look(job) {
    if (this.stream === null && job.background && LIVE.includes(job.state) && !this.signal.aborted) this.#listen();
  }

  #listen() {
    this.stream = new EventSource(address(`jobs/${this.handle}/events`));
    for (const name of ["progress", "done", "failed"]) this.stream.addEventListener(name, () => this.refresh());
    for (const name of ["data", "warning"]) {
      this.stream.addEventListener(name, (event) => {
        this.element.hidden = false;
        write(this.log, `${timeOfDay(now())} ${name}: ${shown(JSON.parse(event.data).data)}\n`);
      });
    }
    // It ends with the job, and a job that was given up may come to life again.
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
