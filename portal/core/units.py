"""Rates are decimal (bit/s with SI prefixes), sizes binary; texts for people."""

_SI = ((10**12, "Tbit/s"), (10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s"))


def rate_text(bps: float) -> str:
    """A rate in the largest SI unit that keeps it at 1 or more: 1500000000 -> ``1.5 Gbit/s``."""
    for factor, unit in _SI:
        if abs(bps) >= factor:
            return f"{bps / factor:.10g} {unit}"
    return f"{bps:.0f} bit/s"


def measured_text(bps: float) -> str:
    """As ``rate_text``, to three digits, which is what a measurement is good for: ``5.14 Mbit/s``."""
    return rate_text(float(f"{bps:.3g}") if bps >= 1 else round(bps))
