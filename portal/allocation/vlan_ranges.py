"""The frames that a VLL end takes from its port, as a range of integers. PostgreSQL can exclude overlapping
ranges.

A key is ``tpid_bit << 24 | outer << 12 | inner``. ``tpid_bit`` is 1 for an outer 0x88a8 and 0 for 0x8100;
``inner`` is 0 for a frame with one tag. Ranges are half-open.
"""

from portal.core.network.vlan_tags import Tagging

Keys = tuple[int, int]
WHOLE_PORT: Keys = (0, 2**25)


def tag_keys(tagging: Tagging, *, outer: int | None, inner: int | None, exact_match: bool) -> Keys:
    """Return the half-open range of keys for the frames that an end with these tags takes.

    A sub-interface that is not exact-match also takes frames with more tags than it is configured with (VPP
    src/vnet/ethernet/node.c). A sub-interface with only an outer VLAN therefore excludes every inner VLAN.
    """
    if tagging is Tagging.UNTAGGED:
        return WHOLE_PORT
    if outer is None:
        raise ValueError(f"{tagging} needs an outer VLAN")
    base = (1 << 24 if tagging is Tagging.DOT1AD else 0) | outer << 12
    if tagging is Tagging.DOT1Q:
        return (base, base + 1) if exact_match else (base, base + 4096)
    if inner is None:
        raise ValueError(f"{tagging} needs an inner VLAN")
    return (base | inner, (base | inner) + 1)


def overlap(one: Keys, other: Keys) -> bool:
    """Return whether the ranges have a frame in common. Of two overlapping ranges, one always contains the
    other.
    """
    return one[0] < other[1] and other[0] < one[1]
