"""Slots of processes: a new process gets the lowest free number and continues its counters."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.metrics.multiprocess import NoSlot, Slots


def test_two_processes_have_two_slots_and_a_free_slot_is_used_again(tmp_path: Path) -> None:
    here = Slots(tmp_path)
    assert here.of_this_process() == 0
    take = (
        "import sys; from pathlib import Path; from portal.metrics.multiprocess import Slots;"
        "slots = Slots(Path(sys.argv[1])); print(slots.of_this_process(), flush=True); sys.stdin.read()"
    )

    def start() -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-c", take, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    first, second = start(), start()
    try:
        numbers = sorted(int(child.stdout.readline()) for child in (first, second))  # type: ignore[union-attr]
        assert numbers == [1, 2]
        first.kill()
        first.wait()
        third = start()
        assert int(third.stdout.readline()) in (1, 2)  # type: ignore[union-attr]
        third.kill()
        third.wait()
    finally:
        for child in (first, second):
            child.kill()
            child.wait()
    assert here.of_this_process() == 0


def test_a_child_has_its_own_slot_and_its_parent_keeps_its_slot(tmp_path: Path) -> None:
    slots = Slots(tmp_path)
    assert slots.of_this_process() == 0
    child = os.fork()
    if child == 0:
        os._exit(10 + slots.of_this_process())
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 11
    # The child closed its copy of the lock; the parent's copy still locks.
    assert Slots(tmp_path).of_this_process() == 1


def test_an_unusable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NoSlot, match=r"LONGLINE_METRICS_DIR .*file"):
        Slots(tmp_path / "file").of_this_process()
