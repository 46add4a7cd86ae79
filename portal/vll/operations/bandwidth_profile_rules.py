"""The rules for the excess rate and the burst sizes of a bandwidth profile."""

from collections.abc import Iterator, Mapping

from portal.core.bandwidth_profile import MAX_BURST
from portal.core.errors import DomainError
from portal.inventory.models import Port
from portal.vll.errors import BurstOutOfRange, EirOutOfRange, ExcessBurstWithoutRate, PeakAbovePort

# 1 Tbit/s, as for the CIR: faster than any port.
MAX_EIR_BPS = 10**12


def profile_refusals(
    *,
    cir_bps: int,
    eir_bps: int,
    cbs_bytes: int | None,
    ebs_bytes: int | None,
    frame: int,
    ports: Mapping[str, Port],
) -> Iterator[DomainError]:
    """Return the refusals of the excess rate and the bursts.

    ``frame``: the largest frame at a UNI, with tags, in bytes. A bucket that is smaller than a frame never
    has enough tokens for it (RFC 2698, section 3), so all such frames would be lost. CIR plus EIR must not
    exceed the speed of a port, even if the port has no other bookings.
    """
    if not 0 <= eir_bps <= MAX_EIR_BPS:
        yield EirOutOfRange(value=eir_bps, minimum=0, maximum=MAX_EIR_BPS)
    elif too_slow := next((port for port in ports.values() if port.speed_bps < cir_bps + eir_bps), None):
        yield PeakAbovePort(
            port=str(too_slow),
            peak_bps=cir_bps + eir_bps,
            speed_bps=too_slow.speed_bps,
            field="eir_bps" if eir_bps else "cir_bps",
        )
    for field, burst in (("cbs_bytes", cbs_bytes), ("ebs_bytes", ebs_bytes)):
        if burst is not None and not frame <= burst <= MAX_BURST:
            yield BurstOutOfRange(field=field, value=burst, minimum=frame, maximum=MAX_BURST)
    if ebs_bytes is not None and eir_bps == 0:
        yield ExcessBurstWithoutRate(value=ebs_bytes)
