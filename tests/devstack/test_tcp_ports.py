"""A reserved TCP port is still free when its server binds it later, even while other stacks start."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from devstack import process
from devstack.folders import ROOT
from devstack.process import LOOPBACK, free_ports


def test_no_port_is_reserved_twice() -> None:
    assert len({*free_ports(50), *free_ports(50)}) == 100


@pytest.mark.parametrize("usual", ["32768\t60999\n", "20000\t60000\n"])
def test_ports_are_outside_the_range_of_outgoing_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual: str
) -> None:
    monkeypatch.setattr(process, "_OUTGOING", tmp_path / "ip_local_port_range")
    process._OUTGOING.write_text(usual)
    first, last = map(int, usual.split())
    assert [port for port in free_ports(50) if first <= port <= last] == []


def test_ports_are_reserved_even_if_outgoing_connections_may_use_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_OUTGOING", tmp_path / "ip_local_port_range")
    process._OUTGOING.write_text("1024\t65535\n")
    assert len(free_ports(50)) == 50


def test_another_process_reserves_other_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = "from devstack.process import free_ports; print(*free_ports(50), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", drawing], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        theirs = [int(port) for port in other.stdout.readline().split()]
        assert len(theirs) == 50
        monkeypatch.setattr(process, "_candidates", lambda: list(theirs))
        with pytest.raises(OSError, match="only 0 of 50 ports are free"):
            free_ports(50)
        other.stdin.write("\n")
        other.stdin.flush()
        other.wait()
    assert free_ports(1)[0] in theirs


def test_no_port_with_a_listening_server_is_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        taken = server.getsockname()[1]
        monkeypatch.setattr(process, "_candidates", lambda: [taken])
        with pytest.raises(OSError, match="only 0 of 1"):
            free_ports(1)
