"""Reads rows from SQL dumps: what pg_dump, mysqldump, mariadb-dump and drizzledump write as text.

Only three statements matter: CREATE TABLE for the order of columns, INSERT, and PostgreSQL's COPY, whose rows follow as
lines. Values are bytes, integers or None; columns of PostgreSQL's type bytea are still encoded, see `bytea`.

>>> dump = b"INSERT INTO `q` (`a`, `b`) VALUES ('it\\\\'s',0x4142),(NULL,7);"
>>> [row.values for row in rows(dump)]
[{'a': b"it's", 'b': b'AB'}, {'a': None, 'b': 7}]
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from geartrain.errors import StoreError

Value = bytes | int | None

_POSTGRESQL: Final = b"PostgreSQL database dump"
_HEAD_SIZE: Final = 4096
# PostgreSQL writes a quote twice and takes backslashes as they are; MySQL escapes with backslashes.
_STRINGS: Final = {True: rb"'(?:[^']++|'')*+'", False: rb"'(?:[^'\\]++|''|\\.)*+'"}
_TOKEN: Final = rb"""
    (?P<skip>\s+|--[^\n]*|/\*.*?\*/|\\[^\n]*)
  | (?P<string>%s)
  | (?P<name>`[^`]*`|"[^"]*"|[A-Za-z_][\w$]*)
  | (?P<hex>0x(?:[0-9A-Fa-f]{2})*)
  | (?P<number>-?\d+)
  | (?P<sign>.)
"""
_MYSQL_ESCAPES: Final = {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"Z": b"\x1a"}
_COPY_ESCAPES: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_ESCAPE: Final = re.compile(rb"\\(.)", re.DOTALL)
_OCTAL: Final = re.compile(rb"\\([0-7]{3}|\\)")
# Words that begin a line of CREATE TABLE which is no column.
_CONSTRAINTS: Final = frozenset({"primary", "unique", "key", "constraint", "index", "check", "foreign", "fulltext"})


class SqlRow(NamedTuple):
    """A row of a table, by the names of its columns."""

    table: str
    values: dict[str, Value]


class _Token(NamedTuple):
    kind: str
    text: bytes

    def is_sign(self, sign: bytes) -> bool:
        return self.kind == "sign" and self.text == sign


def is_postgresql(dump: bytes) -> bool:
    """Whether pg_dump wrote this."""
    return _POSTGRESQL in dump[:_HEAD_SIZE]


def rows(dump: bytes) -> Iterator[SqlRow]:
    """Every row of every table; a StoreError says where the dump cannot be read."""
    yield from _SqlReader(dump).rows()


def bytea(value: bytes) -> bytes:
    r"""The bytes of PostgreSQL's text for a bytea, in the form of the setting `bytea_output` hex or escape.

    >>> bytea(rb"\x4100"), bytea(rb"A\000\\")
    (b'A\x00', b'A\x00\\')
    """
    if value.startswith(b"\\x"):
        try:
            return bytes.fromhex(value[2:].decode("ascii"))
        except ValueError:
            raise StoreError(f"the dump is damaged: {value[:20]!r} is not a bytea") from None
    return _OCTAL.sub(lambda match: b"\\" if match[1] == b"\\" else bytes([int(match[1], 8)]), value)


class _SqlReader:
    def __init__(self, dump: bytes) -> None:
        self._dump = dump
        self._standard = is_postgresql(dump)
        self._token = re.compile(_TOKEN % _STRINGS[self._standard], re.DOTALL | re.VERBOSE)
        self._position = 0
        self._columns: dict[str, list[str]] = {}  # of each table, in the order of CREATE TABLE

    def rows(self) -> Iterator[SqlRow]:
        while True:
            token = self._next()
            if token.kind == "end":
                return
            word = token.text.lower() if token.kind == "name" else b""
            if word == b"create":
                self._create()
            elif word == b"insert":
                yield from self._insert()
            elif word == b"copy":
                yield from self._copy()
            elif not token.is_sign(b";"):
                self._skip_statement()

    def _next(self) -> _Token:
        while True:
            match = self._token.match(self._dump, self._position)
            if match is None:
                return _Token("end", b"")
            self._position = match.end()
            kind = match.lastgroup or ""
            if kind != "skip":
                return _Token(kind, match[0])

    def _skip_statement(self) -> None:
        token = self._next()
        while token.kind != "end" and not token.is_sign(b";"):
            token = self._next()

    def _table(self) -> tuple[str, _Token]:
        """The name of a table without its schema, and the token after it."""
        name = self._name(self._next())
        token = self._next()
        while token.is_sign(b"."):
            name = self._name(self._next())
            token = self._next()
        return name, token

    def _name(self, token: _Token) -> str:
        if token.kind != "name":
            raise self._error("a name", token)
        return token.text.strip(b'`"').decode("utf-8", "replace")

    def _create(self) -> None:
        if self._next().text.lower() != b"table":
            self._skip_statement()
            return
        table, token = self._table()
        columns: list[str] = []
        depth, begins = 1, True  # begins: the next token is the first of a line
        while token.kind != "end" and depth:
            token = self._next()
            if begins and depth == 1 and token.kind == "name":
                columns.append(self._name(token))
            begins = token.is_sign(b",")
            depth += token.is_sign(b"(") - token.is_sign(b")")
        self._columns[table] = [column for column in columns if column.lower() not in _CONSTRAINTS]
        self._skip_statement()

    def _insert(self) -> Iterator[SqlRow]:
        self._next()  # INTO
        table, token = self._table()
        columns = self._columns.get(table, [])
        if token.is_sign(b"("):
            columns, token = self._names(), self._next()
        if token.text.lower() != b"values":
            self._skip_statement()
            return
        while True:
            token = self._next()
            if not token.is_sign(b"("):
                raise self._error("the values of a row", token)
            yield self._row(table, columns, self._values())
            token = self._next()
            if token.is_sign(b";"):
                return
            if not token.is_sign(b","):
                raise self._error("another row or the end of INSERT", token)

    def _names(self) -> list[str]:
        names = [self._name(self._next())]
        token = self._next()
        while token.is_sign(b","):
            names.append(self._name(self._next()))
            token = self._next()
        return names

    def _values(self) -> list[Value]:
        values: list[Value] = []
        while True:
            token = self._next()
            if token.kind == "name" and token.text.lower() != b"null":  # MySQL's _binary before a string
                token = self._next()
            values.append(self._value(token))
            token = self._next()
            if token.is_sign(b")"):
                return values
            if not token.is_sign(b","):
                raise self._error("another value or the end of a row", token)

    def _value(self, token: _Token) -> Value:
        if token.kind == "string":
            text = token.text[1:-1].replace(b"''", b"'")
            return text if self._standard else _unescape(text, _MYSQL_ESCAPES)
        if token.kind == "number":
            return int(token.text)
        if token.kind == "hex":
            return bytes.fromhex(token.text[2:].decode())
        if token.kind == "name":
            return None
        raise self._error("a value", token)

    def _copy(self) -> Iterator[SqlRow]:
        table, token = self._table()
        if not token.is_sign(b"("):
            raise self._error("the columns of COPY", token)
        columns = self._names()
        self._skip_statement()
        while True:
            line = self._line()
            if line == b"\\.":
                return
            yield self._row(table, columns, [_copied(value) for value in line.split(b"\t")])

    def _line(self) -> bytes:
        """The next line; the rest of the one that ends the statement is skipped."""
        if self._dump[self._position : self._position + 1] == b"\n":
            self._position += 1
        end = self._dump.find(b"\n", self._position)
        if end < 0:
            raise StoreError("the dump is truncated: the rows of COPY do not end")
        line = self._dump[self._position : end].removesuffix(b"\r")
        self._position = end
        return line

    def _row(self, table: str, columns: list[str], values: list[Value]) -> SqlRow:
        if len(columns) != len(values):
            raise StoreError(
                f"the dump has a row of {table} with {len(values)} values for {len(columns)} columns, near byte "
                f"{self._position:,}"
            )
        return SqlRow(table, dict(zip(columns, values, strict=True)))

    def _error(self, expected: str, token: _Token) -> StoreError:
        found = "the end of the file" if token.kind == "end" else repr(token.text[:20])[1:]
        return StoreError(
            f"the dump is damaged or truncated: expected {expected} near byte {self._position:,}, found {found}"
        )


def _unescape(text: bytes, escapes: dict[bytes, bytes]) -> bytes:
    return _ESCAPE.sub(lambda match: escapes.get(match[1], match[1]), text) if b"\\" in text else text


def _copied(value: bytes) -> Value:
    return None if value == b"\\N" else _unescape(value, _COPY_ESCAPES)
