"""Following one job: what its clients would hear of it, as a stream of events."""

from starlette.responses import Response

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.steering import portraits, views
from geartrain.web import stream
from geartrain.web.call import Call


class Follower(Watcher):
    """Passes on what it hears to a feed."""

    __slots__ = ("engine", "feed")

    def __init__(self, feed: stream.Feed, engine: Engine) -> None:
        super().__init__()
        self.feed = feed
        self.engine = engine

    def progress(self, job: LiveJob, progress: Progress) -> None:
        said = {"numerator": progress.numerator, "denominator": progress.denominator}
        self.feed.say(stream.frame("progress", said))

    def data(self, job: LiveJob, data: bytes) -> None:
        self.feed.say(stream.frame("data", {"data": views.text(data)}))

    def warning(self, job: LiveJob, data: bytes) -> None:
        self.feed.say(stream.frame("warning", {"data": views.text(data)}))

    def complete(self, job: LiveJob, result: bytes) -> None:
        self._end(job, result)

    def fail(self, job: LiveJob, reason: str) -> None:
        self._end(job, None)

    def exception(self, job: LiveJob, data: bytes) -> None:
        self._end(job, data)

    def _end(self, job: LiveJob, result: bytes | None) -> None:
        view = portraits.job(job, portraits.SHOWN_BYTES, result, self.engine.now)
        self.feed.say(ending(view), last=True)


def ending(view: views.JobView) -> bytes:
    """The last event of a job."""
    return stream.frame("done" if view.state == "done" else "failed", view)


async def events(asked: Call) -> Response:
    """GET /jobs/{handle}/events."""
    house = asked.house
    stream.require_room(house)
    feed = stream.Feed(house.tick_loop.loop)
    follower = Follower(feed, house.engine)
    engine = house.now()
    job = engine.find(asked.names[0])
    if job is None:
        feed.say(ending(await house.steward.job(asked.names[0])), last=True)
        return stream.EventStream(house, feed, _nobody)
    if job.progress is not None:
        follower.progress(job, job.progress)
    engine.watch(job, follower)
    return stream.EventStream(house, feed, lambda: house.now().forget(follower))


def _nobody() -> None:
    """The job was over: nobody watches it."""
