"""A worker's processes collect garbage often and only from tasks, because waiting garbage makes them grow."""

import json
import subprocess
import sys

from devstack.folders import ROOT

# Making a worker imports all tasks and sends Celery's signal; starting it would fork its pool next.
WORKER = """
import gc
import json
from portal.celery import app
at_start = gc.get_threshold()
worker = app.Worker(hostname="garbage@test", concurrency=1)
told = {
    "tasks": [name for name in app.tasks if name.startswith("provisioning.")],
    "looked_through": len(gc.get_objects()),
    "frozen": gc.get_freeze_count(),
    "at_start": at_start,
    "thresholds": gc.get_threshold(),
}
print(json.dumps(told))
"""


def test_only_what_tasks_make_is_looked_through_and_more_often_than_at_the_start() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKER], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["tasks"]
    assert told["frozen"] > 50_000
    assert told["looked_through"] < told["frozen"] / 10
    assert told["thresholds"][0] < told["at_start"][0]
