"""Errors of changes to a router: maintenance, freezes, and changes that lines forbid."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.core.errors import Conflict, DomainError


class RouterIsDrained(Conflict):
    """A drained router stays under maintenance until the drain ends."""

    text = gettext_lazy("{router} is drained, so its maintenance continues. End the drain first.")
    router: str


class RouterIsDead(Conflict):
    """A router that was declared dead stays under maintenance until that declaration is withdrawn."""

    text = gettext_lazy("{router} is declared dead, so its maintenance continues. Undo that first.")
    router: str


class LinesAffected(Conflict):
    """The network would no longer carry these lines as they were sold.

    ``lines``: the names of the first few affected lines. ``count``: the number of all affected lines.
    """

    name: str
    lines: list[str]
    count: int
    field: str = "accept_affected"

    @property
    def sentence(self) -> str:
        lines = ", ".join(self.lines)
        if self.count > len(self.lines):
            lines = _("{lines} and {more} more").format(lines=lines, more=self.count - len(self.lines))
        return _(
            "With this change to {name}, the largest frames of these lines would be lost: {lines}. Keep"
            " the present value, or accept the loss: their customers are notified."
        ).format(name=self.name, lines=lines)


class LoopbackInUse(Conflict):
    """Tunnels of lines end on the address that the change would remove from its router."""

    text = gettext_lazy(
        "The tunnels of {count} lines, such as {example}, end on {address} of {router}. First move these "
        "lines, or change their transport to the other IP version. Then change the address."
    )
    router: str
    address: str
    count: int
    example: str
    field: str


class UnderlayTableInUse(Conflict):
    """Tunnels of lines are in the router's underlay table, which the change would replace."""

    text = gettext_lazy(
        "The tunnels of {count} lines, such as {example}, end on {router} in table {table}. If you change "
        "the table, these lines are down until both of their routers and the links are in the new table. "
        "Remove or move these lines first. Then change the table."
    )
    router: str
    table: int
    count: int
    example: str
    field: str = "underlay_table"


class ChangeWhileFrozen(Conflict):
    """One of the line's routers is frozen. The change would reach only the other router, and the line would
    carry nothing until the freeze ends.
    """

    text = gettext_lazy(
        "{router} is frozen. The change needs both routers of the line, so the line would carry nothing "
        "until the freeze ends. Order the change again when the freeze has ended."
    )
    router: str


class RouterCannotBeFrozen(DomainError):
    """The router's agent does not support a freeze, or has never reported."""

    text = gettext_lazy(
        "The agent of {router} does not support freezes, or has never reported. Upgrade the agent first, "
        "or lock the router: then the portal sends nothing to the agent, but the agent still repairs drift."
    )
    router: str


class FreezeTooLong(DomainError):
    """A freeze must end in the future, within some days."""

    text = gettext_lazy(
        "The end of a freeze must be in the future and within {days} days. If you need more time, begin "
        "another freeze later."
    )
    days: int
    field: str = "until"


class LineBeingTested(Conflict):
    """A line on the router is being tested. A frozen router would not reconnect it."""

    text = gettext_lazy(
        "{line} is being tested, and would carry nothing while {router} is frozen. A test takes less than "
        "a minute. Freeze the router after the test."
    )
    router: str
    line: str


class RouterIsNotFrozen(Conflict):
    """The router has no freeze that could be ended or reviewed."""

    text = gettext_lazy(
        "The portal has not frozen {router}. If an operator has frozen it on the router, end that freeze "
        "there, with `longline-agent unfreeze`."
    )
    router: str


class FreezeNotOver(Conflict):
    """The differences after a freeze can only be reviewed when the freeze has ended."""

    text = gettext_lazy(
        "The freeze of {router} is not over. End it first; then you see what was changed meanwhile."
    )
    router: str
