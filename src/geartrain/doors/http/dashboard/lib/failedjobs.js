// How many failed jobs the server keeps. The overview has only how many failed since its start: some were retried or
// deleted, and some failed before. So they are counted anew when one has failed, and from time to time while there are any.
import { get } from "./api.js";

const AGAIN = 15_000; // milliseconds

export const failedJobs = {
  count: 0,
  _failed: -1, // of the overview, when they were counted
  _countedAt: 0,
  _counting: false,

  /** Count again if that may have changed; `changed` is called with the overview if it has. */
  async update(now, changed) {
    const old = this.count > 0 && Date.now() - this._countedAt > AGAIN;
    if (this._counting || (now.failed === this._failed && !old)) return;
    this._counting = true;
    try {
      const { scanned } = await get("failures", { state: "failed" });
      this._failed = now.failed;
      this._countedAt = Date.now();
      if (scanned === this.count) return;
      this.count = scanned;
      changed(now);
    } catch {
      this._failed = now.failed; // without the right to read them, or without a server: the number stays as it is
    } finally {
      this._counting = false;
    }
  },
};
