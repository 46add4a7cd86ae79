"""Counts and durations of Celery tasks.

A task that is killed (at its hard limit, or with its worker) is counted as begun and never as ended. Begun
minus ended tasks is therefore the number of killed and running tasks.
"""

from time import perf_counter
from typing import Any

from celery import Task, signals
from prometheus_client import Counter, Histogram

from portal.metrics.multiprocess import REGISTRY

_starts = Counter("longline_task_starts", "Tasks that a worker started.", ["task"], registry=REGISTRY)
_ends = Counter(
    "longline_task_ends",
    "Tasks that ended: success, failure, or another of Celery's states in lower case.",
    ["task", "outcome"],
    registry=REGISTRY,
)
_durations = Histogram(
    "longline_task_duration_seconds",
    "Duration of tasks.",
    ["task"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 15, 30, 60, 120),
    registry=REGISTRY,
)
_begun: dict[str, float] = {}


@signals.task_prerun.connect(dispatch_uid="longline_task_begins")
def task_begins(task_id: str, task: Task, **_: Any) -> None:  # type: ignore[type-arg]
    _begun[task_id] = perf_counter()
    _starts.labels(task.name).inc()


@signals.task_postrun.connect(dispatch_uid="longline_task_ends")
def task_ended(task_id: str, task: Task, state: str | None = None, **_: Any) -> None:  # type: ignore[type-arg]
    began = _begun.pop(task_id, None)
    if began is not None:
        _durations.labels(task.name).observe(perf_counter() - began)
    _ends.labels(task.name, (state or "unknown").lower()).inc()
