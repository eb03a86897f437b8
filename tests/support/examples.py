"""How many examples hypothesis tries.

The profile decides (tests/conftest.py): the number that a test names is for a full run, and `quick` takes a tenth.
"""

from typing import Any

from hypothesis import settings

FULL = 100  # what hypothesis tries where a test names no number


def examples(count: int, **others: Any) -> settings:
    """Settings for a test that needs another number of examples than FULL.

    @examples(300)
    @given(st.binary())
    def test_any_bytes(data: bytes) -> None: ...
    """
    return settings(max_examples=max(1, count * settings.default.max_examples // FULL), **others)
