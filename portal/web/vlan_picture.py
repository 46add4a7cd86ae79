"""The VLANs of a port as a picture: a strip for each thousand VLANs, with a hundred VLANs in each row."""

from dataclasses import dataclass

from portal.allocation.vlan_usage import VlanRange, VlanUsage
from portal.core.vlan_tags import MAX_VLAN, MIN_VLAN

COLUMNS = 100
_STRIP = 1000
# The maximum number of free ranges that are links in the picture. Further ranges would be too small to click.
# The list next to the picture has all ranges.
LINKS = 60


@dataclass(frozen=True, slots=True)
class FreeArea:
    """The part of a free range that is in one strip. ``vlans``: the whole range. ``path``: SVG path data."""

    vlans: VlanRange
    path: str


@dataclass(frozen=True, slots=True)
class Strip:
    """A strip of cells, ``rows`` high and ``COLUMNS`` wide.

    * ``used``: the VLANs in use. ``shared``: the VLANs with only some inner VLANs in use.
      ``outside``: cells without a VLAN. Each value is SVG path data in units of cells; "" if there are no
      such cells.
    * ``free``: the free ranges that are links.
    """

    vlans: VlanRange
    rows: int
    used: str
    shared: str
    outside: str
    free: list[FreeArea]


def strips_of(usage: VlanUsage) -> list[Strip]:
    """Return the five strips with all VLANs. The largest free ranges become links."""
    free = sorted(usage.free, key=len, reverse=True)[:LINKS]
    return [_strip(usage, free, start) for start in range(0, MAX_VLAN + 1, _STRIP)]


def _strip(usage: VlanUsage, free: list[VlanRange], start: int) -> Strip:
    last = min(start + _STRIP - 1, MAX_VLAN)
    whole = VlanRange(max(start, MIN_VLAN), last)

    def drawn(ranges: tuple[VlanRange, ...]) -> str:
        return "".join(_path(part, start) for each in ranges if (part := _within(each, whole)))

    areas = [FreeArea(each, _path(part, start)) for each in free if (part := _within(each, whole))]
    rows = -(-(last + 1 - start) // COLUMNS)
    beyond = ((start, whole.first - 1), (last + 1, start + rows * COLUMNS - 1))
    outside = "".join(_path(VlanRange(*each), start) for each in beyond if each[0] <= each[1])
    return Strip(whole, rows, drawn(usage.used), drawn(usage.shared), outside, areas)


def _within(vlans: VlanRange, other: VlanRange) -> VlanRange | None:
    first, last = max(vlans.first, other.first), min(vlans.last, other.last)
    return VlanRange(first, last) if first <= last else None


def _path(vlans: VlanRange, start: int) -> str:
    """Return SVG path data for a range of VLANs, as up to three rectangles.

    The rectangles are the part of the first row, the whole rows, and the part of the last row.
    """
    path, at, end = "", vlans.first - start, vlans.last - start + 1
    while at < end:
        row, column = divmod(at, COLUMNS)
        whole_rows = (end - at) // COLUMNS if column == 0 else 0
        width = COLUMNS if whole_rows else min(COLUMNS - column, end - at)
        height = max(whole_rows, 1)
        path += f"M{column} {row}h{width}v{height}h-{width}z"
        at += width * height
    return path
