"""Errors of changes to a router, and of found lines: their adoption, and the end of their management."""

from django.utils.translation import gettext_lazy as _

from portal.core.errors import Conflict, DomainError


class RouterIsDrained(Conflict):
    """A drained router stays under maintenance until the drain ends."""

    text = _("{router} is drained, so its maintenance continues. End the drain first.")
    router: str


class RouterIsDead(Conflict):
    """A router that was declared dead stays under maintenance until that declaration is withdrawn."""

    text = _("{router} is declared dead, so its maintenance continues. Undo that first.")
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
        text = _(
            "With this change to {name}, the largest frames of these lines would be lost: {lines}. Keep"
            " the present value, or accept the loss: their customers are notified."
        )
        return self.filled(text, lines=lines)


class LoopbackInUse(Conflict):
    """Tunnels of lines end on the address that the change would remove from its router."""

    text = _(
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

    text = _(
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

    text = _(
        "{router} is frozen. The change needs both routers of the line, so the line would carry nothing "
        "until the freeze ends. Order the change again when the freeze has ended."
    )
    router: str


class RouterCannotBeFrozen(DomainError):
    """The router's agent does not support a freeze, or has never reported."""

    text = _(
        "The agent of {router} does not support freezes, or has never reported. Upgrade the agent first, "
        "or lock the router: then the portal sends nothing to the agent, but the agent still repairs drift."
    )
    router: str


class FreezeTooLong(DomainError):
    """A freeze must end in the future, within some days."""

    text = _(
        "The end of a freeze must be in the future and within {days} days. If you need more time, begin "
        "another freeze later."
    )
    days: int
    field: str = "until"


class LineBeingTested(Conflict):
    """A line on the router is being tested. A frozen router would not reconnect it."""

    text = _(
        "{line} is being tested, and would carry nothing while {router} is frozen. A test takes less than "
        "a minute. Freeze the router after the test."
    )
    router: str
    line: str


class RouterIsNotFrozen(Conflict):
    """The router has no freeze that could be ended or reviewed."""

    text = _(
        "The portal has not frozen {router}. If an operator has frozen it on the router, end that freeze "
        "there, with `longline-agent unfreeze`."
    )
    router: str


class FreezeNotOver(Conflict):
    """The differences after a freeze can only be reviewed when the freeze has ended."""

    text = _("The freeze of {router} is not over. End it first; then you see what was changed meanwhile.")
    router: str


class PortShutDown(Conflict):
    """A line must stay managed while one of its ports is shut down because of the far end's link."""

    code = "port-kept-down"
    text = _(
        "A port of this line is shut down because the other end has lost its link. Turn link loss forwarding "
        "off first, so that the port is up when the line is let go."
    )


class FoundLineUnknown(DomainError):
    """The found line no longer exists: its router shows it differently, or it was adopted."""

    text = _(
        "This found line has changed: its routers now report it differently, or it was taken over already. "
        "Look at the list again."
    )


class FoundLineOdd(DomainError):
    """The found line has oddities that prevent its adoption, because lines are adopted unchanged.

    ``odd``: a sentence for each oddity.
    """

    text = _(
        "The portal takes over a line without changing it, but something about this line is unusual: {odd} "
        "Fix that on the routers first."
    )
    odd: str


class AdoptionsRefused(DomainError):
    """Some of the lines to adopt together are refused, so none is adopted.

    ``refusals``: one refusal for each refused line.
    """

    text = _(
        "{count} of these lines cannot be taken over, so no line was taken over. Leave these lines out, or "
        "fix what prevents the takeover."
    )
    count: int
    refusals: tuple[DomainError, ...]


class FoundPortUnknown(DomainError):
    """An end of a found line is at an interface that is not a port yet. The portal cannot create the port,
    because its customer or speed is unknown.
    """

    text = _(
        "{interface} of {router} is not a port of the inventory. The portal adds the port if you name the "
        "customer of the line and VPP knows the port’s speed. Otherwise add the port with its customer and "
        "its speed, and try again."
    )
    router: str
    interface: str


class FoundPortOfAnother(DomainError):
    """An end of a found line is at a port that belongs to a customer other than the line's customer."""

    text = _(
        "{port} is a port of {owner}, but the line was to belong to {customer}. A line and its ports have "
        "the same customer: name {owner}, or change the port."
    )
    port: str
    owner: str
    customer: str


class RouterAdoptsNothing(DomainError):
    """The router's agent does not support adoption, or is away."""

    text = _(
        "The agent of {router} is not allowed to take over lines, or has not reported recently. Set "
        "`adoption: allowed` in the agent’s file, start the agent again, and wait for its next report."
    )
    router: str


class LineNotHere(DomainError):
    """No line with that id or name ends on the router."""

    text = _("No line “{line}” ends on {router}. Give its whole id, or its name as the portal has it.")
    line: str
    router: str
    field: str = "line"


class LineAmbiguous(DomainError):
    """Several lines on the router have that name."""

    text = _("Several lines here are called “{line}”. Give the id of one: {ids}.")
    line: str
    ids: str
    field: str = "line"


class AdoptionWhileFrozen(Conflict):
    """Nothing is adopted on a frozen router: its configuration may change at any moment."""

    text = _(
        "{router} is frozen: somebody is working on it, and its configuration may change at any moment. "
        "Take the line over when the freeze has ended."
    )
    router: str


class RouterLetsNothingGo(DomainError):
    """The router's agent cannot stop managing a line and leave it unchanged."""

    text = _("The agent of {router} does not support letting a line go. Upgrade the agent first.")
    router: str
