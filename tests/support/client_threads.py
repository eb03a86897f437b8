"""The threads of the library's clients, which a test leaves as it found them: others may have clients of their own."""

import threading


def client_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "geartrain-client"}
