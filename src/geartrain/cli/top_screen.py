"""The live view of `geartrain top`, made with textual."""

from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static

from geartrain.cli import formatting, status, top
from geartrain.errors import GeartrainError

_SORTS: Final = ("queued", "oldest", "running", "failed", "name")
# Columns that fit into 80 characters; `geartrain status` has more.
_COLUMNS: Final = ("FUNCTION", "QUEUED", "RUNNING", "SCHEDULED", "DEAD", "WORKERS", "OLDEST", "FAILED")
_NAME_WIDTH: Final = 18


class TopScreen(App[None]):
    """The overview, a search field that is hidden until it is used, and the table of functions."""

    ENABLE_COMMAND_PALETTE = False
    CSS = "Static { padding: 0 1; height: auto; } Input { display: none; } Input.visible { display: block; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("s", "next_sort", "sort"),
        Binding("slash", "search", "search", key_display="/"),
        Binding("p", "toggle_pause", "pause/resume"),
        Binding("escape", "leave_search", show=False),
    ]

    def __init__(self, server: str, interval: float, sort: str, local: bool = False) -> None:
        super().__init__()
        self._server = server
        self._interval = interval
        self._sort = sort
        self._local = local
        self._search = ""
        self._client: Any = None
        self._rows: list[dict[str, Any]] = []

    def compose(self) -> ComposeResult:
        yield Static(f"connecting to {self._server} ...", id="numbers", markup=False)
        yield Input(placeholder="function", id="search")
        yield DataTable(id="functions", cursor_type="row", zebra_stripes=True)
        yield Footer()

    async def on_mount(self) -> None:
        from geartrain.client.async_client import AsyncClient

        self._client = AsyncClient(*self._server.split(","))
        table = self.query_one("#functions", DataTable)
        for name in _COLUMNS:
            table.add_column(name, width=_NAME_WIDTH if name == "FUNCTION" else None)
        table.focus()
        self.set_interval(self._interval, self._refresh_view)
        self.call_later(self._refresh_view)

    async def on_unmount(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _refresh_view(self) -> None:
        numbers = self.query_one("#numbers", Static)
        try:
            overview, page = await top.snapshot(self._client, self._search, self._sort, self._local)
        except GeartrainError as error:
            numbers.update(f"{self._server}: {error}")
            return
        numbers.update("\n".join([*top.headline(overview), f"by {self._sort}"]))
        self._rows = page["items"]
        self._draw()

    def _draw(self) -> None:
        """Fill the table again, with the cursor in the same row."""
        table = self.query_one("#functions", DataTable)
        row = table.cursor_row
        table.clear()
        for function in self._rows:
            table.add_row(*_cells(function))
        if self._rows:
            table.move_cursor(row=min(row, len(self._rows) - 1))

    async def action_next_sort(self) -> None:
        current = _SORTS.index(self._sort) if self._sort in _SORTS else -1
        self._sort = _SORTS[(current + 1) % len(_SORTS)]
        await self._refresh_view()

    def action_search(self) -> None:
        field = self.query_one("#search", Input)
        field.add_class("visible")
        field.focus()

    def action_leave_search(self) -> None:
        self.query_one("#search", Input).remove_class("visible")
        self.query_one("#functions", DataTable).focus()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        self._search = event.value
        self.action_leave_search()
        await self._refresh_view()

    async def action_toggle_pause(self) -> None:
        from geartrain.client import control

        row = self.query_one("#functions", DataTable).cursor_row
        if not 0 <= row < len(self._rows):
            return
        function = self._rows[row]
        verb = "resume" if function["paused"] else "pause"
        try:
            await control.ask(self._client, verb, function=function["name"])
        except GeartrainError as error:
            self.notify(str(error), severity="error")
        else:
            self.notify(f"{formatting.value(function['name'])} {verb}d")
        await self._refresh_view()


def _cells(function: dict[str, Any]) -> list[Text]:
    """A row of the table; a paused function has a mark before its name, and is dim."""
    values = dict(zip(status.HEAD, status.row(function), strict=True))
    name = formatting.one_line(("\u2016 " if function["paused"] else "") + values.pop("FUNCTION"), _NAME_WIDTH)
    style = "dim" if function["paused"] else ""
    return [Text(name, style), *(Text(values[column], style, justify="right") for column in _COLUMNS[1:])]


def run(server: str, interval: float, sort: str, local: bool) -> None:
    """Show the view until the user quits."""
    TopScreen(server, interval, sort, local).run()
