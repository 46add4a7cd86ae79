"""Child processes are stopped by pid, and the error of a dead one names its log."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devstack.process import Child, ChildFailed, Family, run


def child(tmp_path: Path, script: str, **more: object) -> Child:
    return Child(name="some", argv=["sh", "-c", script], log=tmp_path / "some.log", **more)


def is_running(pid: int) -> bool:
    """Zombies do not count as running: their new parent may reap them late."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(condition) -> bool:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_the_error_of_a_child_that_ends_early_has_its_log_and_last_output(tmp_path: Path) -> None:
    with pytest.raises(ChildFailed) as failure:
        child(tmp_path, "echo cannot bind; exit 3").start().wait_until(lambda: False)
    assert "some ended with status 3" in str(failure.value)
    assert str(tmp_path / "some.log") in str(failure.value)
    assert "cannot bind" in str(failure.value)


def test_a_response_from_another_process_does_not_hide_a_dead_child(tmp_path: Path) -> None:
    dead = child(tmp_path, "exit 1").start()
    dead.process.wait()
    with pytest.raises(ChildFailed):
        dead.wait_until(lambda: True)


def test_a_child_that_is_never_ready_is_reported(tmp_path: Path) -> None:
    with Family() as family, pytest.raises(ChildFailed, match=r"not ready within 0\.2 s"):
        family.start(child(tmp_path, "sleep 60")).wait_until(lambda: False, timeout_s=0.2)


def test_stopping_ends_grandchildren_too(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    parent = child(tmp_path, f"sleep 60 & echo $! > {pid_file}; wait").start()
    assert eventually(lambda: pid_file.exists() and pid_file.read_text().strip() != "")
    grandchild = int(pid_file.read_text())
    parent.stop()
    assert eventually(lambda: not is_running(grandchild))


def test_a_child_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    stubborn = child(tmp_path, f"trap '' TERM; touch {ready}; while :; do sleep 1; done", grace_s=0.2)
    stubborn.start().wait_until(ready.exists)
    pid = stubborn.process.pid
    stubborn.stop()
    assert not is_running(pid)


def test_the_whole_family_stops_when_one_member_dies(tmp_path: Path) -> None:
    with pytest.raises(ChildFailed), Family() as family:
        survivor = family.start(child(tmp_path, "sleep 60"))
        pid = survivor.process.pid
        family.start(child(tmp_path, "exit 1")).process.wait()
        family.raise_if_dead()
    assert not is_running(pid)


def test_children_end_when_their_parent_is_killed_outright(tmp_path: Path) -> None:
    script = (
        "import time; from pathlib import Path; from devstack.process import Child;"
        f"c = Child(name='c', argv=['sleep', '60'], log=Path({str(tmp_path / 'c.log')!r})).start();"
        "print(c.process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert eventually(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
        os.kill(parent.pid, signal.SIGKILL)
    assert eventually(lambda: not is_running(pid))


def test_the_output_of_a_failing_command_stays_in_its_log(tmp_path: Path) -> None:
    log = tmp_path / "one.log"
    with pytest.raises(ChildFailed, match="went wrong"):
        run(["sh", "-c", "echo it went wrong; exit 2"], log=log)
    assert run(["echo", "fine"], log=log) == "fine\n"
