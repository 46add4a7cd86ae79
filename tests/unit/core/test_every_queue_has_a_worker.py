"""Every Celery queue has a worker in each kind of deployment."""

import re

import pytest
import yaml
from django.conf import settings

from devstack.folders import ROOT

QUEUES = sorted(
    {settings.CELERY_TASK_DEFAULT_QUEUE} | {each["queue"] for each in settings.CELERY_TASK_ROUTES.values()}
)


@pytest.mark.parametrize("queue", QUEUES)
def test_each_deployment_has_a_worker_of_the_queue(queue: str) -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    commands = [" ".join(map(str, each.get("command", []))) for each in services.values()]
    assert any(f"-Q {queue} " in command for command in commands)
    chart = yaml.safe_load((ROOT / "deploy/helm/longline/values.yaml").read_text())
    assert queue in chart["workers"]
    # The services that a restore stops, and those that the guide starts on a machine without containers.
    assert queue.replace("_", "-") in (ROOT / "deploy/compose/restore").read_text().split("$compose stop ")[1]
    assert f"longline-worker@{queue}.service" in (ROOT / "deploy/systemd/longline-workers.target").read_text()
    in_the_demo = re.findall(r'queues="([^"]+)"', (ROOT / "devstack/portal.py").read_text())
    assert queue in {each for queues in in_the_demo for each in queues.split(",")}
