"""Values that are saved under names, where several servers share the store: what others have saved, and who leads.

Where a server has its store alone, nothing is published, and it leads.
"""

from collections.abc import Callable, Mapping

Values = Mapping[str, bytes]


class ValueFeed:
    """Tells those who use saved values of changes."""

    def __init__(self) -> None:
        self.is_shared = False  # whether other servers save values too
        self.leads = True  # whether this server does what only one of them may do
        self._on_values: list[Callable[[Values], None]] = []
        self._on_lead: list[Callable[[bool], None]] = []

    def subscribe(self, on_values: Callable[[Values], None], on_lead: Callable[[bool], None] | None = None) -> None:
        """Call `on_values` with values that were saved, or, if they are empty, removed; `on_lead` with who leads."""
        self._on_values.append(on_values)
        if on_lead is not None:
            self._on_lead.append(on_lead)

    def publish(self, values: Values) -> None:
        """Another server has saved these values. Values that this server saved itself may be among them."""
        for call in self._on_values:
            call(values)

    def lead(self, leads: bool) -> None:
        """This server became the leader, or is it no longer."""
        self.leads = leads
        for call in self._on_lead:
            call(leads)
