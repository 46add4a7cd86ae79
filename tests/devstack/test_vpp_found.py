"""Where a VPP is looked for, and what one is told at its start."""

from pathlib import Path

import pytest

from devstack import vpp


def install(prefix: Path) -> Path:
    (prefix / "bin").mkdir(parents=True)
    for name in ("vpp", "vppctl"):
        (prefix / "bin" / name).touch(mode=0o755)
    return prefix


def test_the_prefix_of_the_environment_is_the_only_place_when_it_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vpp, "DEFAULT_PREFIXES", (str(install(tmp_path / "usual")),))
    monkeypatch.setenv("VPP_PREFIX", str(tmp_path / "asked"))
    with pytest.raises(vpp.NotInstalled, match=f"{tmp_path}/asked/bin"):
        vpp.find()
    install(tmp_path / "asked")
    assert vpp.find().prefix == tmp_path / "asked"


def test_the_first_of_the_usual_places_wins_and_all_are_named_when_none_has_it(
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


def test_a_private_prefix_brings_its_own_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = tmp_path / "lib" / "x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    (libraries / "libvlib.so.25.10").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    assert vpp.Installation(tmp_path).environment()["LD_LIBRARY_PATH"] == f"{libraries}:/elsewhere"


def test_two_vpps_share_nothing_and_take_no_network_card(tmp_path: Path) -> None:
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
