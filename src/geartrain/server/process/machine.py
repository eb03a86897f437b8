"""What the machine gives the process: memory and file descriptors."""

import contextlib
import os
import resource
import sys
from pathlib import Path

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),  # version 2, as a container sees its own group
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),  # version 1
)

# For the store's files, the log, listening sockets and the event loop: about twenty, and room for more.
_DESCRIPTORS_KEPT = 64


def memory_size() -> int:
    """The bytes of memory that the process may use: those of its control group, or of the machine."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # no such file, or the word `max`
            sizes.append(int(path.read_text()))
    return min(sizes)


def most_connections() -> int:
    """How many sockets of peers may be open so that the store, the log and the listeners still get descriptors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(limit - _DESCRIPTORS_KEPT, limit // 2)
