"""Network namespaces: usable from one thread, and removed after their process has died."""

import socket
import subprocess

import pytest

from devstack.routers import netns

pytestmark = pytest.mark.skipif(netns.why_unusable() is not None, reason=str(netns.why_unusable()))


def names() -> set[str]:
    listed = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines()}


def test_a_namespace_has_loopback_only_and_ends_with_its_block() -> None:
    with netns.namespace("alone") as name:
        assert name in names()
        assert [interface for _, interface in netns.inside(name, socket.if_nameindex)] == ["lo"]
    assert name not in names()


def test_going_inside_does_not_move_the_caller() -> None:
    before = socket.if_nameindex()
    with netns.namespace("visited") as name:
        netns.inside(name, socket.if_nameindex)
        assert socket.if_nameindex() == before


def test_an_exception_inside_is_raised_outside() -> None:
    with netns.namespace("failing") as name, pytest.raises(ZeroDivisionError):
        netns.inside(name, lambda: 1 // 0)


def test_only_namespaces_of_dead_processes_are_leftovers() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    orphan = f"ll{ended.pid}-orphan"
    subprocess.run(["ip", "netns", "add", orphan], check=True)
    with netns.namespace("alive") as mine:
        netns.remove_leftovers()
        assert mine in names()
        assert orphan not in names()
