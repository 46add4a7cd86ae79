"""The strictness of a path's MTU check."""

from dataclasses import dataclass

from portal.core.network.required_mtu import MtuPolicy


@dataclass(frozen=True, slots=True)
class PathPolicy:
    """The rules for the MTU check of a path.

    ``any_single_failure``: whether the path must carry the frame after any one failure too. None means True
    with the policy ``planning``, and False with ``exact``.
    """

    mtu: MtuPolicy = MtuPolicy.PLANNING
    any_single_failure: bool | None = None

    @property
    def survives_one_failure(self) -> bool:
        if self.any_single_failure is None:
            return self.mtu is MtuPolicy.PLANNING
        return self.any_single_failure
