"""The figures of the simulation, one per line: `scale <name> <value> <unit>`. Notes follow after a #."""

from collections.abc import Iterator
from math import nan

from bench.figures import percentile
from drills.scale.simulation import Phase, Simulation
from drills.scale.slopes import slope

# Seconds. A latency's slope is calculated from the medians of intervals of this length.
_SPAN_S = 15.0
# Processes that exist only in the simulation.
_SIMULATION_ONLY = {"agents of the simulation", "the simulation"}


def figures(simulation: Simulation) -> Iterator[str]:
    """Yield the figures. A figure without the name of a phase comes from the phase with all loads."""
    if not simulation.phases:
        yield "# nothing was measured"
        return
    all_loads = simulation.phases[-1]
    minutes = all_loads.seconds / 60
    yield f"# {simulation.size}; {minutes:.1f} minutes were measured"
    yield _line("introduced_s", simulation.introduced_s, "s", "all routers tell all_loads for the first time")
    yield _line("settled_s", simulation.settled_s, "s", "until all effects of these reports have ended")
    yield from _reports(simulation)
    for who, lags in simulation.lags.observed.items():
        for percent in (50, 95, 100):
            yield _line(
                f"status_lag_{who}_p{percent}_s", _percentile(lags, percent), "s", f"{len(lags)} turns"
            )
    yield _line(
        "status_never_shown",
        simulation.lags.never,
        "turns",
        "a page did not show it before the line's next turn",
    )
    orders = [took for at, took in simulation.orders.took if at >= simulation.measured_from]
    yield _line(
        "orders_per_s",
        len(orders) / all_loads.seconds,
        "1/s",
        f"{len(simulation.orders.failed)} refused or failed",
    )
    for percent in (50, 95, 99):
        yield _line(f"orders_p{percent}_ms", _percentile(orders, percent), "ms")
    for what, took in simulation.requests.took.items():
        yield _line(f"looks_{what}_p95_ms", _percentile(took, 95), "ms", f"{len(took)} looks")
    yield _line(
        "looks_failed",
        len(simulation.requests.failed),
        "looks",
        f"{simulation.requests.events} events, {simulation.requests.dropped} streams dropped",
    )
    for name, took in simulation.readers.took.items():
        yield _line(
            f"{name.replace(' ', '_').replace(',', '')}_p95_ms",
            _percentile(took, 95),
            "ms",
            f"{len(took)}, of {simulation.readers.sizes[name]} bytes",
        )
    yield _line("readings_failed", len(simulation.readers.failed), "readings")
    yield from _slopes(simulation)
    yield from _costs(simulation)
    for what in [
        *simulation.orders.failed[:5],
        *simulation.requests.failed[:5],
        *simulation.readers.failed[:5],
    ]:
        yield f"# failed: {what[:400]}"


def _reports(simulation: Simulation) -> Iterator[str]:
    """Yield the figures about reports. Each router should send two documents every 10 s."""
    offered = simulation.size.routers / 10
    for kind, all_took in simulation.reports.took.items():
        took = [seconds for at, seconds in all_took if at >= simulation.measured_from]
        rate = len(took) / simulation.phases[-1].seconds
        yield _line(f"reports_{kind}_per_s", rate, "1/s", f"{offered:g} offered")
        yield _line(
            f"reports_{kind}_p95_ms",
            _percentile([1000 * each for each in took], 95),
            "ms",
            "from when it was due",
        )
    refused = sum(simulation.reports.refused.values())
    yield _line("reports_not_stored", refused, "reports", f"by status: {dict(simulation.reports.refused)}")


def _slopes(simulation: Simulation) -> Iterator[str]:
    """Yield the slope of each series with its standard error. A series that is always 0 is left out."""
    series = dict(simulation.samples.series)
    series["latency of orders, ms"] = _medians(
        [one for one in simulation.orders.took if one[0] >= simulation.measured_from]
    )
    for kind, took in simulation.reports.took.items():
        series[f"latency of {kind}, ms"] = _medians(
            [(at, 1000 * s) for at, s in took if at >= simulation.measured_from]
        )
    for name, samples in series.items():
        values = [value for _, value in samples]
        steep = slope(samples)
        if steep is not None and any(values) and not any(own in name for own in _SIMULATION_ONLY):
            mean = sum(values) / len(values)
            yield f"scale slope {name}: {steep} (mean {mean:.4g}, most {max(values):.4g})"


def _medians(samples: list[tuple[float, float]]) -> list[tuple[float, float]]:
    spans: dict[int, list[float]] = {}
    for at, value in samples:
        spans.setdefault(int(at // _SPAN_S), []).append(value)
    return [(span * _SPAN_S, percentile(values, 50)) for span, values in sorted(spans.items())]


def _costs(simulation: Simulation) -> Iterator[str]:
    """Yield the figures of each phase.

    The cost of a load is the difference between its phase and the previous phase.
    """
    for phase in simulation.phases:
        yield f"scale phase {phase.name}: {phase.seconds:.0f} s, {phase.counts}"
        spent = {name: cpu - phase.began.cpu_s[name] for name, cpu in phase.ended.cpu_s.items()}
        each = ", ".join(
            f"{name} {1000 * cpu / phase.seconds:.0f}"
            for name, cpu in sorted(spent.items(), key=lambda one: -one[1])
            if cpu / phase.seconds > 0.0005
        )
        together = sum(spent.values())
        others = phase.ended.machine_s - phase.began.machine_s - together
        yield (
            f"#   processor, ms each second: {each}; together {1000 * together / phase.seconds:.0f},"
            f" and {1000 * others / phase.seconds:.0f} of others on this machine"
        )
        orders = [took for at, took in simulation.orders.took if phase.began.at <= at < phase.ended.at]
        if orders:
            p50, p95, p99 = (_percentile(orders, percent) for percent in (50, 95, 99))
            yield f"#   orders: p50 {p50:.0f}, p95 {p95:.0f}, p99 {p99:.0f} ms"
        done = {
            "transactions": phase.ended.commits - phase.began.commits,
            "rows written": phase.ended.rows - phase.began.rows,
            "kB of WAL": (phase.ended.wal - phase.began.wal) / 1024,
            "kB of disk": (phase.ended.disk - phase.began.disk) / 1024,
        }
        yield "#   each second: " + ", ".join(
            f"{count / phase.seconds:.0f} {name}" for name, count in done.items()
        )
    before: Phase | None = None
    for phase, what in zip(simulation.phases, ("reports", "orders", "looks", "readings"), strict=False):
        if phase.counts[what]:
            yield f"scale cost {what}: {_cost(phase, before, what)}"
        before = phase


def _cost(phase: Phase, before: Phase | None, what: str) -> str:
    rates = _rates(phase)
    if before is not None:
        rates = {name: rate - _rates(before)[name] for name, rate in rates.items()}
    per = phase.counts[what] / phase.seconds
    return ", ".join(f"{rate / per:.1f} {name}" for name, rate in rates.items())


def _rates(phase: Phase) -> dict[str, float]:
    """Return the work per second in a phase, without the work of the simulation itself."""
    spent = {name: cpu - phase.began.cpu_s[name] for name, cpu in phase.ended.cpu_s.items()}
    work = {
        "ms of processor": 1000 * sum(cpu for name, cpu in spent.items() if name not in _SIMULATION_ONLY),
        "rows": phase.ended.rows - phase.began.rows,
        "kB of WAL": (phase.ended.wal - phase.began.wal) / 1024,
    }
    return {name: amount / phase.seconds for name, amount in work.items()}


def _percentile(values: list[float], percent: float) -> float:
    return percentile(values, percent) if values else nan


def _line(name: str, value: float, unit: str, note: str = "") -> str:
    text = f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"scale {name} {text} {unit}" + (f"\n# {name}: {note}" if note else "")
