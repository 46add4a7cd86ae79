"""Errors about found lines: their adoption, and the end of their management."""

from django.utils.translation import gettext_lazy

from portal.core.errors import Conflict, DomainError


class PortShutDown(Conflict):
    """A line must stay managed while one of its ports is shut down because of the far end's link."""

    code = "port-kept-down"
    text = gettext_lazy(
        "A port of this line is shut down because the other end has lost its link. Turn link loss forwarding "
        "off first, so that the port is up when the line is let go."
    )


class FoundLineUnknown(DomainError):
    """The found line no longer exists: its router shows it differently, or it was adopted."""

    text = gettext_lazy(
        "This found line has changed: its routers now report it differently, or it was taken over already. "
        "Look at the list again."
    )


class FoundLineOdd(DomainError):
    """The found line has oddities that prevent its adoption, because lines are adopted unchanged.

    ``odd``: a sentence for each oddity.
    """

    text = gettext_lazy(
        "The portal takes over a line without changing it, but something about this line is unusual: {odd} "
        "Fix that on the routers first."
    )
    odd: str


class AdoptionsRefused(DomainError):
    """Some of the lines to adopt together are refused, so none is adopted.

    ``refusals``: one refusal for each refused line.
    """

    text = gettext_lazy(
        "{count} of these lines cannot be taken over, so no line was taken over. Leave these lines out, or "
        "fix what prevents the takeover."
    )
    count: int
    refusals: tuple[DomainError, ...]


class FoundPortUnknown(DomainError):
    """An end of a found line is at an interface that is not a port yet. The portal cannot create the port,
    because its customer or speed is unknown.
    """

    text = gettext_lazy(
        "{interface} of {router} is not a port of the inventory. The portal adds the port if you name the "
        "customer of the line and VPP knows the port’s speed. Otherwise add the port with its customer and "
        "its speed, and try again."
    )
    router: str
    interface: str


class FoundPortOfAnother(DomainError):
    """An end of a found line is at a port that belongs to a customer other than the line's customer."""

    text = gettext_lazy(
        "{port} is a port of {owner}, but the line was to belong to {customer}. A line and its ports have "
        "the same customer: name {owner}, or change the port."
    )
    port: str
    owner: str
    customer: str


class RouterAdoptsNothing(DomainError):
    """The router's agent does not support adoption, or is away."""

    text = gettext_lazy(
        "The agent of {router} is not allowed to take over lines, or has not reported recently. Set "
        "`adoption: allowed` in the agent’s file, start the agent again, and wait for its next report."
    )
    router: str


class LineNotHere(DomainError):
    """No line with that id or name ends on the router."""

    text = gettext_lazy(
        "No line “{line}” ends on {router}. Give its whole id, or its name as the portal has it."
    )
    line: str
    router: str
    field: str = "line"


class LineAmbiguous(DomainError):
    """Several lines on the router have that name."""

    text = gettext_lazy("Several lines here are called “{line}”. Give the id of one: {ids}.")
    line: str
    ids: str
    field: str = "line"


class AdoptionWhileFrozen(Conflict):
    """Nothing is adopted on a frozen router: its configuration may change at any moment."""

    text = gettext_lazy(
        "{router} is frozen: somebody is working on it, and its configuration may change at any moment. "
        "Take the line over when the freeze has ended."
    )
    router: str


class RouterLetsNothingGo(DomainError):
    """The router's agent cannot stop managing a line and leave it unchanged."""

    text = gettext_lazy("The agent of {router} does not support letting a line go. Upgrade the agent first.")
    router: str
