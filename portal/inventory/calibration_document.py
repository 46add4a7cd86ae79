"""The document that `longline-agent calibrate -json` prints, and the part of it that the portal stores.

The format is described in docs/reference/agent-requests.md.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, Struct

from portal.core.network.encapsulations import Transport
from portal.core.strict_json import (
    ForeignText,
    Invalid,
    Malformed,
    Natural53,
    Positive31,
    reader,
    require_unique,
)
from portal.inventory.errors import CalibrationOfAnother, CalibrationUnreadable

# The limits of plausible values: clocks per frame, of one node or of about twenty nodes together; a time
# stamp counter of 1 MHz to 100 GHz.
_Clocks = Annotated[float, Meta(gt=0, le=1e6)]
_ClockHz = Annotated[float, Meta(ge=1e6, le=1e11)]


class _Node(Struct, frozen=True, forbid_unknown_fields=True):
    node: ForeignText
    clocks: _Clocks


class _Figure(Struct, frozen=True, forbid_unknown_fields=True):
    transport: Transport
    clocks: _Clocks
    least: _Clocks
    most: _Clocks
    nodes: Annotated[list[_Node], Meta(max_length=100)]


class _Missing(Struct, frozen=True, forbid_unknown_fields=True):
    transport: Transport
    message: ForeignText


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    schema: Literal[1]
    router: ForeignText
    measured_ms: Natural53
    vpp_version: ForeignText
    agent_version: ForeignText
    cpu: ForeignText
    clock_hz: _ClockHz
    rounds: Positive31
    frames: Positive31
    figures: Annotated[list[_Figure], Meta(min_length=1, max_length=100)]
    missing: Annotated[list[_Missing], Meta(max_length=100)]


_read = reader(_Document)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A calibration of a router.

    ``clocks``: the clocks per frame of 64 bytes, by transport. ``clock_hz``: clocks per second. A transport
    that could not be measured is missing. Local cross-connects are always present.
    """

    measured_at: datetime
    vpp_version: str
    cpu: str
    clock_hz: float
    rounds: int
    clocks: Mapping[Transport, float]

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Self:
        """Return the calibration that ``Router.calibration`` stores."""
        clocks = {Transport(name): clocks for name, clocks in kept["clocks"].items()}
        measured_at = datetime.fromisoformat(kept["measured_at"])
        return cls(**{**kept, "clocks": clocks, "measured_at": measured_at})

    def kept(self) -> dict[str, Any]:
        """Return the value to store in ``Router.calibration``, which ``Calibration.of`` reads."""
        clocks = {transport.value: clocks for transport, clocks in self.clocks.items()}
        return {**asdict(self), "measured_at": self.measured_at.isoformat(), "clocks": clocks}


def calibration_read(text: str, *, router: str) -> Calibration:
    """Parse a calibration of that router. Raises CalibrationUnreadable, CalibrationOfAnother."""
    try:
        document = _read(text.encode())
        require_unique(document.figures, "transport", at="/figures")
        measured_at = datetime.fromtimestamp(document.measured_ms / 1000, UTC)
    except (Malformed, Invalid, UnicodeEncodeError, ValueError, OverflowError) as error:
        raise CalibrationUnreadable(detail=str(error)) from error
    if document.router != router:
        raise CalibrationOfAnother(router=router, measured=str(document.router))
    clocks = {figure.transport: figure.clocks for figure in document.figures}
    if Transport.L2XC not in clocks:
        raise CalibrationUnreadable(detail="/figures: there is none of l2xc")
    return Calibration(
        measured_at=measured_at,
        vpp_version=str(document.vpp_version),
        cpu=str(document.cpu),
        clock_hz=document.clock_hz,
        rounds=document.rounds,
        clocks=clocks,
    )
