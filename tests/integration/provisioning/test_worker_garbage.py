"""A worker's processes collect garbage often and only from tasks, because waiting garbage makes them grow."""

import json
import subprocess
import sys

from devstack.folders import ROOT

# Creating a worker imports all tasks and sends Celery's signal; starting it would fork its pool next.
WORKER = """
import gc
import json
from portal.celery import app
at_start = gc.get_threshold()
worker = app.Worker(hostname="garbage@test", concurrency=1)
state = {
    "tasks": [name for name in app.tasks if name.startswith("provisioning.")],
    "tracked": len(gc.get_objects()),
    "frozen": gc.get_freeze_count(),
    "at_start": at_start,
    "thresholds": gc.get_threshold(),
}
print(json.dumps(state))
"""


def test_garbage_collection_covers_only_objects_of_tasks_and_runs_more_often_than_at_the_start() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKER], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    state = json.loads(done.stdout.splitlines()[-1])
    assert state["tasks"]
    assert state["frozen"] > 50_000
    assert state["tracked"] < state["frozen"] / 10
    assert state["thresholds"][0] < state["at_start"][0]
