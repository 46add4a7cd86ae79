"""What pages are about, and which of them a committed change concerns.

A page names topics: ``line:<id>`` (one line, with its orders, ends and tests), ``lines`` (all lines and
orders that its reader sees), ``ports`` (all ports of its reader), ``webhooks`` (all webhooks of its reader
and their deliveries), ``network`` (routers and links), ``alarms`` and ``netbox`` (the state of the exchange
with NetBox); the last three are the NOC's. Each topic has keys, by which changes are looked up: no customer
may even notice a change of another customer's line.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.core.exceptions import PermissionDenied

from portal.accounts.models import User
from portal.vll.models import Vll

# PostgreSQL's; triggers write to it: portal/live/sql, and page_changes.sql of other apps.
CHANNEL = "longline_live"
MOST_TOPICS = 20
_LINE = "line:"
_OF_A_CUSTOMER = frozenset({"lines", "ports", "webhooks"})
_OF_THE_NOC = frozenset({"network", "alarms", "netbox"})

# The keys of each topic.
Followed = Mapping[str, frozenset[str]]


class BadTopics(Exception):
    """No topics, too many, or one that there is not; the text says which."""


class UnknownLine(Exception):
    """A line that is not there for this reader."""


def follow(user: User, topics: Sequence[str]) -> Followed:
    """What ``user`` follows with these topics.

    Raises BadTopics, UnknownLine for a line out of the user's scope, and PermissionDenied for the NOC's.
    """
    wanted = frozenset(topics)
    if not 0 < len(wanted) <= MOST_TOPICS:
        raise BadTopics(f"Name 1 to {MOST_TOPICS} topics, not {len(wanted)}.")
    lines = {topic: _line_id(topic) for topic in wanted if topic.startswith(_LINE)}
    unknown = wanted - lines.keys() - _OF_A_CUSTOMER - _OF_THE_NOC
    if unknown:
        raise BadTopics(f"{min(unknown)[:40]!r} is no topic.")
    if wanted & _OF_THE_NOC and not user.is_noc:
        raise PermissionDenied
    named = set(lines.values())
    if named and Vll.objects.visible_to(user).filter(pk__in=named).distinct().count() < len(named):
        raise UnknownLine
    followed = {topic: frozenset({f"{_LINE}{line}"}) for topic, line in lines.items()}
    if wanted & _OF_A_CUSTOMER:
        scope = _scope(user)
        for topic in wanted & _OF_A_CUSTOMER:
            followed[topic] = frozenset(f"{topic}{each}" for each in scope)
    return followed | {topic: frozenset({topic}) for topic in wanted & _OF_THE_NOC}


def keys_of(change: str) -> frozenset[str]:
    """The keys of a change as the triggers tell it; none of one that is not understood.

    While a new release is installed the triggers may be newer than this process.
    """
    kind, _, rest = change.partition(":")
    match kind:
        case "line":
            line, _, customer = rest.partition(":")
            return frozenset({f"{_LINE}{line}", f"lines:{customer}", "lines"})
        case "ports" | "webhooks":
            return frozenset({f"{kind}:{rest}", kind})
        case "network" | "alarms" | "netbox":
            return frozenset({kind})
    return frozenset()


def _line_id(topic: str) -> UUID:
    try:
        return UUID(topic.removeprefix(_LINE))
    except ValueError:
        raise BadTopics(f"{topic[:40]!r} names no line.") from None


def _scope(user: User) -> list[str]:
    """ "" for all customers there are, else one for each of the user's."""
    if user.is_noc:
        return [""]
    return [f":{pk}" for pk in user.memberships.values_list("customer_id", flat=True)]
