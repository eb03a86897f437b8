"""The numbers of a node's commits, and what they tell about a commit whose answer was lost.

Each commit sets the counter of its node to its own number, which is higher than all before. So whoever reads the
counter on a new connection knows whether a commit was carried out: it has its number, or that of an earlier one.
"""

from collections.abc import Iterable

from geartrain.store.shared import FENCED, LEFT, FencedError, WentBackError


class CommitNumbers:
    """Counts the commits of one node.

    >>> from geartrain.store.shared import SERVING
    >>> numbers = CommitNumbers(node=7)
    >>> numbers.begin()
    1
    >>> numbers.is_carried_out(0, SERVING), numbers.is_carried_out(1, SERVING)
    (False, True)
    >>> numbers.end(is_batch=True)
    >>> numbers.is_carried_out(0, SERVING)
    Traceback (most recent call last):
        ...
    geartrain.store.shared.WentBackError: the last commit that the database has is 0, not 1
    """

    def __init__(self, node: int) -> None:
        self.node = node
        self.last = 0  # that succeeded
        self.current = 0  # that is being tried, or was last
        self.is_repeated = False  # the next batch has changes of one that was given up and may have been carried out
        self.undone: list[int] = []  # ids of jobs that were accepted in that one, and undone since

    def begin(self) -> int:
        """Number the next commit."""
        self.current += 1
        return self.current

    def end(self, is_batch: bool) -> None:
        """The commit succeeded. It may have been something else than a batch of changes."""
        self.last = self.current
        if is_batch:
            self.is_repeated = False
            self.undone = []

    def give_up(self, accepted: Iterable[int]) -> None:
        """The commit was sent and not answered. If it is carried out nevertheless, these jobs are to be removed."""
        self.is_repeated = True
        self.undone.extend(accepted)

    def is_carried_out(self, counter: int, state: int, is_whole: bool = False) -> bool:
        """Whether the commit that is being tried has been carried out, by the counter and the state of the node.

        A commit that is whole writes all jobs, so the database may be of any time.
        """
        if state in (FENCED, LEFT):
            raise FencedError(f"node {self.node} was fenced by another server", has_lost=counter < self.last)
        if counter < self.last and not is_whole:
            raise WentBackError(f"the last commit that the database has is {counter}, not {self.last}")
        return counter == self.current
