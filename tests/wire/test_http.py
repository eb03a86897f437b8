"""HTTP requests: vectors that are fed whole, byte by byte and split, and requests that other servers read otherwise."""

from collections.abc import Iterable
from typing import Any

import httptools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geartrain.errors import WireError
from geartrain.wire.http import HEAD_LIMIT, RequestHead, RequestReader

LIMIT = 1000  # bytes of a body

GET = b"GET /a/%2f?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5;name=value\r\nhello\r\n06\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
)
OLD = b"GET / HTTP/1.0\r\n\r\n"

Found = tuple[str, bytes, bytes, bytes]


def requests(pieces: Iterable[bytes], reader: RequestReader | None = None) -> list[Found]:
    """The requests in these pieces: method, path, query and body."""
    reader = reader or RequestReader(LIMIT)
    found: list[Found] = []
    head = None
    for piece in pieces:
        reader.feed(piece)
        while True:
            if head is None:
                head = reader.next_head()
            if head is None:
                break
            body = reader.next_body()
            if body is None:
                break
            found.append((head.method, head.path, head.query, body))
            head = None
    return found


def head_of(data: bytes) -> Any:
    reader = RequestReader(LIMIT)
    reader.feed(data)
    return reader.next_head()


VECTORS = {
    "get": (GET, [("GET", b"/a/%2f", b"x=1", b"")]),
    "post": (POST, [("POST", b"/jobs", b"", b"hello")]),
    "chunks": (CHUNKED, [("POST", b"/jobs", b"", b"hello world")]),
    "old": (OLD, [("GET", b"/", b"", b"")]),
    "no body": (b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", [("POST", b"/", b"", b"")]),
    "empty chunks": (b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [("PUT", b"/", b"", b"")]),
    "absolute": (b"GET http://h:1/p?q HTTP/1.1\r\nHost: other\r\n\r\n", [("GET", b"/p", b"q", b"")]),
    "asterisk": (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", [("OPTIONS", b"*", b"", b"")]),
    "unknown method": (b"BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n", [("BREW", b"/pot", b"", b"")]),
    "empty lines": (b"\r\n\r\n" + OLD, [("GET", b"/", b"", b"")]),
    "pipelined": (GET + POST + CHUNKED + POST + GET, []),
}
VECTORS["pipelined"][1].extend(found for name in ("get", "post", "chunks", "post", "get") for found in VECTORS[name][1])


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name: str) -> None:
    data, wanted = VECTORS[name]
    assert requests([data]) == wanted
    assert requests(data[at : at + 1] for at in range(len(data))) == wanted
    for at in range(1, len(data)):
        assert requests([data[:at], data[at:]]) == wanted, at


@given(st.lists(st.sampled_from([GET, POST, CHUNKED]), min_size=1), st.lists(st.integers(1, 200)))
def test_requests_do_not_depend_on_how_they_arrive(parts: list[bytes], sizes: list[int]) -> None:
    data = b"".join(parts)
    pieces = []
    rest = data
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    assert requests([*filter(None, pieces), rest]) == requests([data])


BAD = {
    "no version": b"GET /\r\n\r\n",
    "old protocol": b"GET / HTTP/0.9\r\n\r\n",
    "other version": b"GET / HTTP/2.0\r\n\r\n",
    "other protocol": b"GET / SMTP/1.1\r\n\r\n",
    "two spaces": b"GET  / HTTP/1.1\r\n\r\n",
    "a tab": b"GET\t/ HTTP/1.1\r\n\r\n",
    "a method that is no word": b"G(T / HTTP/1.1\r\n\r\n",
    "a target that is no path": b"GET here HTTP/1.1\r\n\r\n",
    "a fragment": b"GET /a#b HTTP/1.1\r\n\r\n",
    "bytes in the target": b"GET /\xff HTTP/1.1\r\n\r\n",
    "connect": b"CONNECT host:1 HTTP/1.1\r\n\r\n",
    "a space before the colon": b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    "no name": b"GET / HTTP/1.1\r\n: x\r\n\r\n",
    "a folded line": b"GET / HTTP/1.1\r\nA: x\r\n y\r\n\r\n",
    "a folded first line": b"GET / HTTP/1.1\r\n A: x\r\n\r\n",
    "a line feed": b"GET / HTTP/1.1\r\nA: x\nB: y\r\n\r\n",
    "a line feed behind the first line": b"GET / HTTP/1.1\nA: x\r\n\r\n",
    "a carriage return": b"GET / HTTP/1.1\r\nA: x\rB: y\r\n\r\n",
    "a zero byte": b"GET / HTTP/1.1\r\nA: \0\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "a list of lengths": b"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\nx",
    "a signed length": b"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\nx",
    "a negative length": b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\nx",
    "a length in hexadecimal": b"POST / HTTP/1.1\r\nContent-Length: 0x1\r\n\r\nx",
    "a length with an underscore": b"POST / HTTP/1.1\r\nContent-Length: 1_0\r\n\r\nx",
    "an empty length": b"POST / HTTP/1.1\r\nContent-Length: \r\n\r\nx",
    "a length in other digits": "POST / HTTP/1.1\r\nContent-Length: ²\r\n\r\nx".encode("latin-1"),
    "a length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
    "two encodings": b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "another encoding": b"POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n",
    "chunks twice": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks of an old request": b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}
TO_CHUNKS = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
BAD_CHUNKS = {
    "no size": b"\r\n",
    "a size that is no number": b"x\r\n",
    "a size with a prefix": b"0x1\r\na\r\n0\r\n\r\n",
    "a size with a space": b"1 \r\na\r\n0\r\n\r\n",
    "a signed size": b"+1\r\na\r\n0\r\n\r\n",
    "a very long size": b"0" * 16 + b"\r\n\r\n",
    "a line feed behind the size": b"1\na\r\n0\r\n\r\n",
    "an extension with a line feed": b"1;a\nb\r\na\r\n0\r\n\r\n",
    "more than the size": b"1\r\nab\r\n0\r\n\r\n",
    "no line behind a chunk": b"1\r\na0\r\n\r\n",
    "a trailer that is no header": b"0\r\nx\r\n\r\n",
}
BAD |= {name: TO_CHUNKS + chunks for name, chunks in BAD_CHUNKS.items()}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_http_is_refused(name: str) -> None:
    data = BAD[name]
    with pytest.raises(WireError) as whole:
        requests([data])
    assert whole.value.code == "BAD_REQUEST"
    assert whole.value.fatal
    with pytest.raises(WireError):
        requests(data[at : at + 1] for at in range(len(data)))
    # Headers that are remembered make no difference.
    reader = RequestReader(LIMIT)
    requests([GET, POST, b"GET / HTTP/1.1\r\nCONTENT-LENGTH: 1\r\n\r\nx"], reader)
    with pytest.raises(WireError):
        requests([data], reader)


def test_a_length_is_not_hidden_by_headers_that_are_remembered() -> None:
    """A block with an unusual spelling is remembered as it is, and must not be taken for one without a length."""
    reader = RequestReader(LIMIT)
    requests([b"POST / HTTP/1.1\r\nCONTENT-LENGTH: 1\r\n\r\nx"] * 2, reader)
    with pytest.raises(WireError):
        requests([b"POST / HTTP/1.1\r\nContent-Length: 3\r\nCONTENT-LENGTH: 1\r\n\r\nxyz"], reader)


def test_lengths_differ_under_the_same_headers() -> None:
    post = b"POST / HTTP/1.1\r\nA: 1\r\n%b: %d\r\nB: 2\r\n\r\n%b"
    sent = [
        post % (name, size, b"x" * size) for name in (b"Content-Length", b"content-length") for size in (0, 1, 12, 3)
    ]
    assert [len(body) for *_, body in requests([b"".join(sent)])] == [0, 1, 12, 3] * 2


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01",
        b"nonsense",
        b"GET /\xff",
        b"SSH-2.0-x\r\n",
        b"GET /\r\n",
        b"GET / HTTP/1.1\n",
        b"GET / HTTP/1.1\r\nA: b\n\n",
    ],
)
def test_what_cannot_become_a_request_is_refused_before_its_end(data: bytes) -> None:
    reader = RequestReader(LIMIT)
    if data == b"nonsense":  # it may be the name of a method
        reader.feed(data)
        assert reader.next_head() is None
        data = b"\r\n"
    with pytest.raises(WireError):
        requests([data], reader)


def test_sizes_are_bounded() -> None:
    with pytest.raises(WireError, match="larger than") as head:
        requests([b"GET / HTTP/1.1\r\n", *[b"A: %b\r\n" % (b"x" * 1000)] * 70])
    assert head.value.code == "HEAD_TOO_LARGE"
    with pytest.raises(WireError, match="larger than"):
        requests([b"GET / HTTP/1.1\r\nA: %b\r\n\r\n" % (b"x" * HEAD_LIMIT)])
    with pytest.raises(WireError, match="larger than") as body:
        requests([b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (LIMIT + 1)])
    assert body.value.code == "TOO_LARGE"
    with pytest.raises(WireError, match="larger than"):
        requests([TO_CHUNKS, b"%x\r\n" % LIMIT, b"x" * LIMIT, b"\r\n1\r\n"])
    with pytest.raises(WireError):
        requests([TO_CHUNKS, b"1;", b"x" * 2000])
    with pytest.raises(WireError):
        requests([TO_CHUNKS, b"0\r\n", *[b"A: %b\r\n" % (b"x" * 1000)] * 70])


def test_headers() -> None:
    head = head_of(b"GET / HTTP/1.1\r\nHOST:x\r\nA:  1 \r\na: 2\r\nCookie: b=1\r\nCookie: c=\xe9\r\n\r\n")
    assert head.headers == {"host": "x", "a": "1, 2", "cookie": "b=1; c=\xe9"}


def test_the_host_of_an_absolute_target_counts() -> None:
    assert head_of(b"GET http://one HTTP/1.1\r\nHost: two\r\n\r\n").headers["host"] == "one"
    assert head_of(b"GET http://one HTTP/1.1\r\nHost: two\r\n\r\n").path == b"/"


@pytest.mark.parametrize(
    ("version", "option", "kept"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Close", False),
        (b"1.1", b"x, close", False),
        (b"1.1", b"Upgrade", False),
        (b"1.0", b"", False),
        (b"1.0", b"Keep-Alive", True),
    ],
)
def test_connections_that_are_kept_alive(version: bytes, option: bytes, kept: bool) -> None:
    head = head_of(b"GET / HTTP/%b\r\nConnection: %b\r\n\r\n" % (version, option))
    assert (head.keep_alive, head.is_old) == (kept, version == b"1.0")


def test_expectations() -> None:
    assert head_of(b"PUT / HTTP/1.1\r\nExpect: 100-Continue\r\n\r\n").expects_continue
    assert not head_of(b"PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expects_continue


def heads_of(*requests: bytes) -> list[RequestHead]:
    """The heads of requests without a body, one after the other on a connection."""
    reader = RequestReader(LIMIT)
    heads = []
    for data in requests:
        reader.feed(data)
        head = reader.next_head()
        assert head is not None
        assert reader.next_body() == b""
        heads.append(head)
    return heads


def test_a_head_that_comes_again_is_not_parsed_again() -> None:
    request = b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n"
    other = request.replace(b"/a", b"/c")
    first, second, third, fourth = heads_of(request, request, other, request)
    assert second is first
    assert [head.path for head in (first, third, fourth)] == [b"/a", b"/c", b"/a"]


def test_a_head_whose_length_differs_is_another() -> None:
    reader = RequestReader(LIMIT)
    bodies = []
    for body in (b"a", b"b", b"cd", b"", b"e"):
        reader.feed(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        assert reader.next_head() is not None
        bodies.append(reader.next_body())
    assert bodies == [b"a", b"b", b"cd", b"", b"e"]


def test_an_expectation_is_met_each_time() -> None:
    """It is cleared when it has been met, so the head of another request must not be the same object."""
    first, second = heads_of(*[b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n"] * 2)
    assert first is not second


class Peer:
    """What httptools, which many servers read requests with, makes of the same bytes."""

    def __init__(self) -> None:
        self.found: list[tuple[bytes, bytes, bytes]] = []
        self.parser = httptools.HttpRequestParser(self)

    def on_message_begin(self) -> None:
        self.target = self.body = b""

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.found.append((self.parser.get_method(), self.target, self.body))


WORDS = st.sampled_from(
    [
        *(b"GET", b"POST", b" ", b"/", b"/a?b", b"HTTP/1.1", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\t", b":", b"A: b"),
        *(b"Content-Length: 2", b"content-length:3", b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip"),
        *(b"Host: x", b"Connection: close", b"2", b"0", b"ab", b"abc", b";", b",", b"\0", b"POST / HTTP/1.1\r\n"),
    ]
)


@given(st.lists(WORDS, max_size=14))
@example([b"POST / HTTP/1.1\r\n", b"Content-Length: 2", b"\r\n\r\n", b"ab", b"POST / HTTP/1.1\r\n", b"\r\n"])
def test_httptools_sees_the_same_requests(words: list[bytes]) -> None:
    """Whatever we accept has the same meaning for the server or proxy beside us."""
    data = b"".join([b"POST / HTTP/1.1\r\n", *words, b"\r\n\r\n"])
    try:
        ours = requests([data])
    except WireError:
        return
    if b"connection" in data.lower():
        return  # httptools reads nothing behind the last request
    if any(method not in ("GET", "POST") for method, *_ in ours):
        return  # httptools refuses methods that it does not know, such as GETPOST
    peer = Peer()
    try:
        peer.parser.feed_data(data)
    except httptools.HttpParserError:
        assert False, f"httptools refuses {data!r}"  # noqa: B011, PT015
    assert [(m.encode(), p + b"?" + q if q else p, body) for m, p, q, body in ours] == [
        (method, target.removesuffix(b"?"), body) for method, target, body in peer.found
    ]
