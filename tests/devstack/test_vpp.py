"""The search for a VPP, its startup commands, and the cables around it."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.isp import small_isp
from devstack.process import ChildFailed, Family
from devstack.routers import netns, vpp
from devstack.routers.vpp_network import UNI, VppDataplane
from devstack.traffic import Wire, frame

SHOWN = """\
Time now {vpp}
cpu time {vpp} now 203119913311175 last 203119913307533 since start 7719890680
reftime 2.969188 now 1795747084.505722 last 1795747081.536533 init 1795747081.536533
error {error}, clocks/sec 2599482408.530282, Fri, 27 Nov 2026 02:38:04 GMT
"""
RIGHT, SLOW = SHOWN.format(vpp="2.969780", error=".000591"), SHOWN.format(vpp=".593838", error="-2.375350")


def install(prefix: Path) -> Path:
    (prefix / "bin").mkdir(parents=True)
    for name in ("vpp", "vppctl"):
        (prefix / "bin" / name).touch(mode=0o755)
    return prefix


def test_a_prefix_from_the_environment_is_the_only_one_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vpp, "DEFAULT_PREFIXES", (str(install(tmp_path / "usual")),))
    monkeypatch.setenv("VPP_PREFIX", str(tmp_path / "configured"))
    with pytest.raises(vpp.NotInstalled, match=f"{tmp_path}/configured/bin"):
        vpp.find()
    install(tmp_path / "configured")
    assert vpp.find().prefix == tmp_path / "configured"


def test_the_first_default_prefix_wins_and_the_error_names_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / "first", tmp_path / "second"]
    monkeypatch.setattr(vpp, "DEFAULT_PREFIXES", tuple(map(str, places)))
    monkeypatch.delenv("VPP_PREFIX", raising=False)
    with pytest.raises(vpp.NotInstalled) as absent:
        vpp.find()
    assert all(str(place) in str(absent.value) for place in places)
    install(places[1])
    assert vpp.find().prefix == places[1]
    install(places[0])
    assert vpp.find().prefix == places[0]


def test_a_private_prefix_has_its_own_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = tmp_path / "lib" / "x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    (libraries / "libvlib.so.25.10").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    assert vpp.Installation(tmp_path).environment()["LD_LIBRARY_PATH"] == f"{libraries}:/elsewhere"


def test_two_vpps_share_nothing_and_use_no_network_card(tmp_path: Path) -> None:
    both = [
        vpp.Vpp(vpp.Installation(tmp_path), label, tmp_path / label, tmp_path / "log", "ns")
        for label in ("rhino", "hippo")
    ]
    rhino, hippo = (each.startup_conf() for each in both)
    assert "plugin dpdk_plugin.so { disable }" in rhino
    for keyword in ("runtime-dir", "cli-listen", "socket-name", "prefix", "log"):
        of_rhino = [line for line in rhino.splitlines() if keyword in line.split()]
        of_hippo = [line for line in hippo.splitlines() if keyword in line.split()]
        assert of_rhino
        assert not set(of_rhino) & set(of_hippo), keyword
    assert rhino.count("{") == rhino.count("}")


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[vpp.Vpp]:
    """Yield a VPP of two shell scripts: one creates the sockets' files, the other records commands."""
    if netns.why_unusable() is not None:
        pytest.skip(str(netns.why_unusable()))
    installation = vpp.Installation(install(tmp_path / "prefix"))
    folder = tmp_path / "run"
    installation.vpp.write_text(f"#!/bin/sh\ntouch {folder}/cli.sock {folder}/api.sock\nexec sleep 60\n")
    installation.vppctl.write_text(
        '#!/bin/sh\nshift 2\necho "$*" >> ' + f"{tmp_path}/commands\n"
        'case "$*" in\n'
        '"show version") echo "vpp v25.10-scripted built by nobody";;\n'
        f'"show clock verbose") echo "{RIGHT}";;\n'
        '"create loopback interface instance 0") echo loop0;;\n'
        '*bad*) echo "unknown input \\`bad\'";;\n'
        "esac\n"
    )
    with netns.namespace("scripted") as name, Family() as family:
        each = vpp.Vpp(installation, "scripted", folder, tmp_path / "log", name)
        each.start(family)
        yield each


def test_an_error_on_the_command_line_stops_the_configuration(scripted: vpp.Vpp, tmp_path: Path) -> None:
    assert scripted.version() == "25.10-scripted"
    scripted.configure("create loopback interface instance 0", "set interface state loop0 up")
    with pytest.raises(vpp.CommandRefused, match="set something bad: unknown input"):
        scripted.configure("set something bad", "never sent")
    assert "never sent" not in (tmp_path / "commands").read_text()


def test_the_cables_join_customers_to_routers_and_routers_to_each_other(tmp_path: Path) -> None:
    if netns.why_unusable() is not None:
        pytest.skip(str(netns.why_unusable()))
    isp, logs = small_isp(), tmp_path / "log"
    network = VppDataplane(vpp.Installation(tmp_path), isp, tmp_path, logs, Family())
    whole = frame(destination=b"\x02" * 6, source=b"\x06" * 6, payload=bytes(9000))
    with network:
        routers = {name.rpartition("-")[2]: name for name in network.router_namespaces.values()}
        cables = [((routers["rhino"], "bb-hippo"), (routers["hippo"], "bb-rhino"))]
        for (router, interface), customer in network.customers.items():
            cables.append(((customer, UNI), (routers[router], interface.removeprefix("host-"))))
        assert len(cables) == 1 + 2 * 3
        for near, far in cables:
            with Wire(*near) as a, Wire(*far) as z:
                a.send(whole)
                assert z.expect(whole, timeout_s=2) is None, (near, far)
                z.send(whole)
                assert a.expect(whole, timeout_s=2) is None, (far, near)
        # The interfaces of the ring's other direction exist too, without a router at the other end.
        for name in ("rhino", "hippo"):
            wanted = {side.linux for side in isp.sides_of(isp.router(name))}
            there = {n for _, n in netns.inside(routers[name], socket.if_nameindex)}
            assert wanted <= there


MISJUDGED_TWICE = """
echo start >> {folder}/starts
case $(wc -l < {folder}/starts) in
    1 | 2) echo 'Rejecting large frequency change of 325383 %' ;;
    *) touch {folder}/ready ;;
esac
exec sleep 60
"""


def test_a_vpp_that_misjudges_its_clock_is_started_again_also_after_a_restart(tmp_path: Path) -> None:
    script, starts, ready = MISJUDGED_TWICE.format(folder=tmp_path), tmp_path / "starts", tmp_path / "ready"
    child = vpp.VppProcess(name="vpp", argv=["sh", "-c", script], log=tmp_path / "log", clock=lambda: RIGHT)
    with Family() as family:
        family.start(child).wait_until(ready.exists)
        assert len(starts.read_text().splitlines()) == 3
        assert child.log.read_text().count("Rejecting") == 2
        starts.unlink()
        ready.unlink()
        child.end()
        child.restart()
        assert len(starts.read_text().splitlines()) == 3


def test_a_vpp_with_too_long_seconds_is_started_again_without_a_message(tmp_path: Path) -> None:
    ready, shown = tmp_path / "ready", iter([SLOW, RIGHT])
    script = f"touch {ready}; exec sleep 60"
    child = vpp.VppProcess(
        name="vpp", argv=["sh", "-c", script], log=tmp_path / "log", clock=lambda: next(shown)
    )
    with Family() as family:
        first = family.start(child).process.pid
        child.wait_until(ready.exists)
        assert child.process.pid != first
    assert next(shown, None) is None


def test_a_vpp_that_always_misjudges_its_clock_is_given_up(tmp_path: Path) -> None:
    script = f"echo start >> {tmp_path}/starts; echo Rejecting large frequency change; exec sleep 60"
    child = vpp.VppProcess(name="vpp", argv=["sh", "-c", script], log=tmp_path / "log", clock=lambda: RIGHT)
    with Family() as family, pytest.raises(ChildFailed, match="Rejecting large frequency change"):
        family.start(child).wait_until((tmp_path / "never").exists, timeout_s=0.5)
    assert len((tmp_path / "starts").read_text().splitlines()) == child.starts
