"""Metrics of the live process. Each machine has one, so a gauge's latest value is the current value."""

from prometheus_client import Counter, Gauge, Histogram

from portal.metrics.multiprocess import REGISTRY

open_streams = Gauge(
    "longline_live_streams", "Pages with an open stream.", registry=REGISTRY, multiprocess_mode="mostrecent"
)
hearing = Gauge(
    "longline_live_hearing",
    "1 while the live process receives PostgreSQL's notifications; otherwise pages poll.",
    registry=REGISTRY,
    multiprocess_mode="mostrecent",
)
events = Counter("longline_live_events", "Changes that were sent to open pages.", registry=REGISTRY)
refusals = Counter(
    "longline_live_refusals", "Pages that got no stream, by HTTP status.", ["status"], registry=REGISTRY
)
lag = Histogram(
    "longline_live_lag_seconds",
    "Time from a commit to its notification, which the live process measures every 15 s.",
    buckets=(0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 5),
    registry=REGISTRY,
)
