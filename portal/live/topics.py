"""The topics that pages follow, and the keys that connect a committed change with the pages.

A page subscribes to topics. Each topic has keys, and each change has keys. A page is notified of a change if
the change has a key of one of the page's topics. A customer is never notified of changes of another
customer's lines.

* ``line:<id>``: one line, with its orders, ends and tests
* ``lines``: all lines and orders that the reader may see
* ``ports``: all ports of the reader
* ``webhooks``: all webhooks of the reader and their deliveries
* ``network``: routers and links (NOC only)
* ``alarms``: alarms (NOC only)
* ``netbox``: the state of the synchronization with NetBox (NOC only)
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.core.exceptions import PermissionDenied

from portal.accounts.models import User
from portal.vll.models import Vll

# Triggers notify this PostgreSQL channel: those in portal/live/sql and page_changes.sql of other apps.
CHANNEL = "longline_live"
MOST_TOPICS = 20
_LINE = "line:"
_OF_A_CUSTOMER = frozenset({"lines", "ports", "webhooks"})
_OF_THE_NOC = frozenset({"network", "alarms", "netbox"})

# For each topic, its keys.
Followed = Mapping[str, frozenset[str]]


class BadTopics(Exception):
    """A request has no topic, too many or an unknown topic. The text says what is wrong."""


class UnknownLine(Exception):
    """The line does not exist, or the reader may not see it."""


def follow(user: User, topics: Sequence[str]) -> Followed:
    """Return the keys that ``user`` follows with each of these topics.

    Raises BadTopics; UnknownLine for lines that the user may not see; PermissionDenied for NOC topics.
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
    """Return the keys of a change, from the text that a trigger sent.

    An unknown text has no keys: during an upgrade, the triggers may be newer than this process.
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
    """Return the suffixes of keys for the user's customers. NOC staff get [""]: all customers."""
    if user.is_noc:
        return [""]
    return [f":{pk}" for pk in user.memberships.values_list("customer_id", flat=True)]
