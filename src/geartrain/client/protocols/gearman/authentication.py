"""The line `auth TOKEN`, which a Gearman connection sends before anything else.

It is an addition of Geartrain. Other servers answer it with an error, since they do not know the command.
"""

from geartrain.address import Address
from geartrain.client.protocols.base import authentication_error
from geartrain.client.protocols.connection import ServerConnection
from geartrain.errors import AuthenticationError


class Authentication:
    """The authentication of one connection: nothing else is sent until the server has accepted the token."""

    __slots__ = ("_address", "_answer", "_connection", "pending")

    def __init__(self, address: Address, connection: ServerConnection) -> None:
        self._address = address
        self._connection = connection
        self._answer = b""
        self.pending = False  # the answer has not arrived

    async def perform(self, token: str) -> None:
        """Send the token, and wait for the answer; an AuthenticationError if it is not accepted."""
        if not token:
            return
        self.pending = True
        self._connection.write(request(token))
        await self._connection.answer()
        try:
            check_answer(self._address, self._answer)
        except AuthenticationError:
            self._connection.abandon()
            raise

    def received(self, answer: bytes) -> None:
        """Take a line, or an error packet, that arrived while the answer was pending."""
        self.pending = False
        self._answer = answer
        self._connection.answered()


def request(token: str) -> bytes:
    """The line that a connection sends first."""
    return b"auth %b\r\n" % token.encode()


def check_answer(address: Address, answer: bytes) -> None:
    """Raise an AuthenticationError unless the server accepted the token."""
    if not answer.startswith(b"OK"):
        raise authentication_error(address, "the token", _reason(answer))


def _reason(answer: bytes) -> str:
    if b"UNKNOWN_COMMAND" in answer:
        return "it does not know the command `auth`, so it is no Geartrain server; connect without a token"
    return answer.replace(b"\0", b" ").replace(b"+", b" ").decode("utf-8", "replace").strip()
