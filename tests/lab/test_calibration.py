"""A router's calibration, from the command line to admission, does not disturb customers' lines."""

import json
import subprocess

import pytest

from devstack.folders import BUILD
from portal.core.network.encapsulations import Transport
from tests.lab.abilities import Ability
from tests.lab.combinations import Combination
from tests.lab.conftest import Lab
from tests.lab.lab_line import WAIT_S, in_service, pass_both_ways

LINE = Combination("vxlan4", "dot1q")


def calibrate(lab: Lab, *options: str) -> subprocess.CompletedProcess[str]:
    config = lab.stack.portal.folder / "agent-rhino" / "agent.yaml"
    command = [str(BUILD / "longline-agent"), "calibrate", "-json", "-config", str(config), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)


def test_calibration_in_service_is_refused_with_a_reason_and_changes_nothing(lab: Lab) -> None:
    with in_service(lab, LINE):
        before = lab.traces()
        for options in ((), ("-with-lines",)):
            refused = calibrate(lab, *options)
            assert refused.returncode == 1
            assert "nothing was done" in refused.stderr
            assert "does not have this router under maintenance" in refused.stderr
        assert lab.traces() == before
        pass_both_ways(lab, LINE)


@pytest.mark.parametrize("options", [(), ("-with-lines",)], ids=["drained", "with a line"])
def test_calibration_under_maintenance_updates_admission(lab: Lab, options: tuple[str, ...]) -> None:
    lab.needs(Ability.ACTIVATION_TESTS)  # uses the same generator
    noc = lab.stack.client("noc")
    rhino = noc.router("rhino")

    def measured() -> dict[str, object]:
        printed: subprocess.CompletedProcess[str] | None = None

        def done() -> bool:
            nonlocal printed
            printed = calibrate(lab, *options)
            # Retry until the agent knows of the maintenance and the line is gone.
            return printed.returncode == 0

        assert noc.wait(done, timeout_s=WAIT_S), printed and printed.stderr
        assert printed is not None
        document: dict[str, object] = json.loads(printed.stdout)
        return document

    def under_maintenance() -> dict[str, object]:
        before = lab.traces()
        noc.router_action(rhino, "maintenance-begin")
        try:
            return measured()
        finally:
            noc.router_action(rhino, "maintenance-end")
            assert lab.traces() == before

    if options:
        with in_service(lab, LINE):
            document = under_maintenance()
            pass_both_ways(lab, LINE)
    else:
        document = under_maintenance()

    taken = noc.take_calibration(rhino, document)
    try:
        clocks = {each["transport"]: each["clocks"] for each in taken["transports"]}
        assert set(clocks) == {transport.value for transport in Transport}
        assert None not in clocks.values()
        with in_service(lab, LINE):
            pass_both_ways(lab, LINE)
    finally:
        given_back = noc.take_calibration(rhino, None)
    assert all(each["clocks"] is None for each in given_back["transports"])
    figures = ", ".join(f"{transport} {each:.0f}" for transport, each in clocks.items())
    lab.report.append(f"lab calibration{' with a line' * bool(options)}: clocks per frame: {figures}")
