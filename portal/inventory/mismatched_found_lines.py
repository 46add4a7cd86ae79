"""Match the two halves of a line if their VNIs or GRE keys differ. Pure functions."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator

from portal.inventory.models import ObservedCircuit


def keys_at_the_far_end(halves: Iterable[ObservedCircuit]) -> dict[int, int]:
    """Return, by the id of a half, the key of its other half. Halves without a clear match are left out.

    ``halves``: all circuits without a partner, at both ends of the tunnels. Two halves match if they are the
    only two between their addresses with the same VLANs. If exactly two halves are then left between two
    addresses, they match too.
    """
    left = {each.pk: each for each in halves}
    found: dict[int, int] = {}
    for name in (_tunnel_and_vlans, _tunnel):
        for one, two in _pairs(left.values(), name):
            found |= {one.pk: two.key or 0, two.pk: one.key or 0}
        left = {pk: each for pk, each in left.items() if pk not in found}
    return found


def _tunnel(half: ObservedCircuit) -> Hashable:
    return half.encapsulation, frozenset((half.local, half.remote))


def _tunnel_and_vlans(half: ObservedCircuit) -> Hashable | None:
    for side in (half.sides["near"], half.sides["far"]):
        if side and (at := side["attachment"]):
            return _tunnel(half), at["tags"], at["dot1ad"], at["outer"], at["inner"]
    return None


def _pairs(
    halves: Iterable[ObservedCircuit], name: Callable[[ObservedCircuit], Hashable | None]
) -> Iterator[tuple[ObservedCircuit, ObservedCircuit]]:
    """Yield the pairs of circuits at different ends that share a ``name`` which no other circuit has."""
    named: dict[Hashable, list[ObservedCircuit]] = defaultdict(list)
    for each in halves:
        named[name(each)].append(each)
    named.pop(None, None)
    for those in named.values():
        if len(those) == 2 and those[0].local == those[1].remote:
            yield those[0], those[1]
