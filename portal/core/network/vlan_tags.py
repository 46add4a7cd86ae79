"""The VLAN tags (IEEE 802.1Q, 802.1ad) that select the frames of a port for a VLL."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError

TPID_DOT1Q = 0x8100
TPID_DOT1AD = 0x88A8

# IEEE 802.1Q-2018 table 9-2: 0 is "priority only" and 4095 is reserved.
MIN_VLAN = 1
MAX_VLAN = 4094

# The number of customer tags that a port-based service (EPL) carries unchanged.
PORT_BASED_TAGS = 2

_FIELDS = {
    "a_end.outer_vlan": _("the outer VLAN of the A end"),
    "a_end.inner_vlan": _("the inner VLAN of the A end"),
    "z_end.outer_vlan": _("the outer VLAN of the Z end"),
    "z_end.inner_vlan": _("the inner VLAN of the Z end"),
    "outer_vlan": _("the outer VLAN"),
    "inner_vlan": _("the inner VLAN"),
}


class VlanRefused(DomainError):
    """The field of a VLAN cannot have this value."""

    code = ""
    field: str

    @property
    def which(self) -> str:
        """Return the name of the field for a sentence."""
        return str(_FIELDS.get(self.field, self.field))


class VlanOutOfRange(VlanRefused):
    """A VLAN id outside 1..4094, or not a whole number."""

    value: object
    minimum: int = MIN_VLAN
    maximum: int = MAX_VLAN

    @property
    def sentence(self) -> str:
        text = _("{value} cannot be {which}: enter a number from {minimum} to {maximum}.")
        return self.filled(text, which=self.which)


class VlanMissing(VlanRefused):
    """The tagging requires a VLAN in this field, but the field is empty."""

    tagging: "Tagging"

    @property
    def sentence(self) -> str:
        return _("Enter {which}: a number from {minimum} to {maximum}.").format(
            which=self.which, minimum=MIN_VLAN, maximum=MAX_VLAN
        )


class VlanNotWanted(VlanRefused):
    """The field contains a VLAN, but the tagging does not use it."""

    tagging: "Tagging"

    @property
    def sentence(self) -> str:
        text = _("Leave out {which}: it has no meaning with the tagging {tagging}.")
        return self.filled(text, which=self.which)


class WholePortIsExact(DomainError):
    """An end without VLANs takes every frame of its port, so ``exact_match`` cannot be false."""

    text = _(
        "A whole port takes every frame, so exact match must stay on. To accept frames with further tags "
        "on a VLAN, choose dot1q."
    )
    field = "exact_match"


class Tagging(StrEnum):
    """The method by which an end selects frames of its port: all frames, or by one or two tags."""

    UNTAGGED = "untagged"
    DOT1Q = "dot1q"
    QINQ = "qinq"
    DOT1AD = "dot1ad"

    @property
    def tpids(self) -> tuple[int, ...]:
        """Return the TPIDs of the tags that select a frame, outermost first."""
        return _TPIDS[self]

    @property
    def selecting_tags(self) -> int:
        """Return the number of tags that select a frame; VPP pops them on entry and pushes them on exit."""
        return len(self.tpids)

    def carried_tags(self, *, exact_match: bool) -> int:
        """Return the largest number of customer tags that enter the tunnel at an end with this tagging.

        Without exact match, a sub-interface also takes frames with one more tag than its VLANs.
        """
        if self is Tagging.UNTAGGED:
            return PORT_BASED_TAGS
        return 0 if exact_match else 1


_TPIDS = {
    Tagging.UNTAGGED: (),
    Tagging.DOT1Q: (TPID_DOT1Q,),
    Tagging.QINQ: (TPID_DOT1Q, TPID_DOT1Q),
    Tagging.DOT1AD: (TPID_DOT1AD, TPID_DOT1Q),
}


def carried_tags(ends: Iterable[tuple[Tagging, bool]]) -> int:
    """Return the largest number of customer tags inside the tunnel: the maximum over both ends.

    ``ends``: ``(tagging, exact_match)`` of each end.
    """
    return max(tagging.carried_tags(exact_match=exact_match) for tagging, exact_match in ends)


def check_vlan(value: object, *, field: str) -> int:
    """Return the VLAN id if it is a whole number in 1..4094. Raises VlanOutOfRange with this ``field``."""
    if isinstance(value, bool) or not isinstance(value, int) or not MIN_VLAN <= value <= MAX_VLAN:
        raise VlanOutOfRange(field=field, value=value)
    return value


def check_tagging(
    tagging: Tagging, *, outer_vlan: int | None, inner_vlan: int | None, exact_match: bool = True
) -> None:
    """Check that the VLANs fit the tagging, and that each VLAN is in range.

    Raises VlanMissing, VlanNotWanted, VlanOutOfRange or WholePortIsExact. Their ``field`` is ``outer_vlan``,
    ``inner_vlan`` or ``exact_match``.
    """
    named = [("outer_vlan", outer_vlan), ("inner_vlan", inner_vlan)]
    for position, (field, vlan) in enumerate(named):
        if position >= tagging.selecting_tags:
            if vlan is not None:
                raise VlanNotWanted(field=field, tagging=tagging)
        elif vlan is None:
            raise VlanMissing(field=field, tagging=tagging)
        else:
            check_vlan(vlan, field=field)
    if tagging is Tagging.UNTAGGED and not exact_match:
        raise WholePortIsExact


# The value of ``least_tags`` and ``most_tags`` for frames with three or more tags.
MANY_TAGS = 3


@dataclass(frozen=True, slots=True)
class Frames:
    """A set of frames of a port, by their outermost tags. None means any value.

    ``dot1ad``: whether the outer TPID is 0x88a8 (True) or 0x8100 (False). A ``most_tags`` of 3 includes
    frames with more than three tags. The agent has the same type, ``intent.Frames``.
    """

    dot1ad: bool | None
    outer: int | None
    inner: int | None
    least_tags: int
    most_tags: int

    def overlaps(self, other: "Frames") -> bool:
        """Return whether some frame belongs to both sets."""
        return max(self.least_tags, other.least_tags) <= min(self.most_tags, other.most_tags) and all(
            one is None or two is None or one == two
            for one, two in (
                (self.dot1ad, other.dot1ad),
                (self.outer, other.outer),
                (self.inner, other.inner),
            )
        )


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags by which an end selects frames. ``outer`` None means any outer VLAN."""

    tagging: Tagging
    outer: int | None
    inner: int | None
    exact_match: bool

    @property
    def frames(self) -> Frames:
        """Return the frames that an end with these tags takes.

        A sub-interface of VPP with two tags also takes frames with more tags, even with exact match.
        """
        tags = self.tagging.selecting_tags
        return Frames(
            dot1ad=None if self.tagging is Tagging.UNTAGGED else self.tagging is Tagging.DOT1AD,
            outer=self.outer,
            inner=self.inner,
            least_tags=tags,
            most_tags=1 if tags == 1 and self.exact_match else MANY_TAGS,
        )
