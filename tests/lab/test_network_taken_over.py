"""A handmade network is adopted by the portal, changed and let go without loss of a frame.

There are many lines on two VPPs, three of them irregular, and objects of vppcfg. Agents and a worker are
killed while the lines are adopted.
"""

import time
from collections.abc import Iterable

import pytest

from devstack.client import Client, Json
from drills.checks.vpp_configuration import configuration
from portal.uploads.vppcfg_file import vppcfg_descriptions
from tests.lab.conftest import Lab
from tests.lab.customers import MemifCustomer
from tests.lab.handmade_network import HandmadeLine, handmade_lines, laid, vppcfg_file
from tests.lab.lab_line import CIR_BPS, WAIT_S
from tests.lab.many_streams import GeneratedStreams, ManyStreams

CALM_S = 1.0


@pytest.mark.parametrize(
    ("count", "changed", "removed"), [(21, 2, 1), pytest.param(50, 5, 3, marks=pytest.mark.release)]
)
def test_no_frame_is_lost_and_nothing_foreign_changes(
    lab: Lab, count: int, changed: int, removed: int
) -> None:
    lines, vpps, noc = handmade_lines(count), lab.dataplane.vpps, lab.stack.client("noc")
    whole = [line for line in lines if not line.odd]
    untouched = lab.traces()
    with laid(vpps, lines):
        made = {name: configuration(vpp) for name, vpp in vpps.items()}
        found = all_found(noc, lines)
        assert {line: found[line]["standing"] for line in lines if line.odd} == {
            line: {"one way": "one_directional", "other VNI": "mismatched", "keeps tags": "mismatched"}[
                line.odd
            ]
            for line in lines
            if line.odd
        }
        assert [line for line in whole if found[line]["standing"] != "complete"] == []
        # This also tests the stream: it has to report frames that this line loses. VPP passes none.
        [one_way] = [line for line in lines if line.odd == "one way"]
        streams = streams_over(lab, [*whole, one_way])
        for each in streams:
            each.start()
        try:
            time.sleep(CALM_S)
            vlls = take_over(lab, noc, {line: found[line] for line in whole}, named_by_vppcfg(lines))
            assert {name: without_tags(configuration(vpp)) for name, vpp in vpps.items()} == {
                name: without_tags(each) for name, each in made.items()
            }
            change(lab, [vlls[line] for line in whole[-changed:]])
            gone = [line for line in whole if line.transport == "vxlan4" and line.tagging == "qinq"][:removed]
            assert len(gone) == removed
            streams[0].leave(gone)
            remove(lab, [vlls.pop(line) for line in gone])
            let_go(noc, vlls.values())
            time.sleep(CALM_S)
        finally:
            for each in streams:
                each.stop()
        assert [text for each in streams for text in each.complaints()] == []
        losses = {flow: text for each in streams for flow, text in each.losses().items()}
        assert losses.keys() == {(one_way, "a"), (one_way, "z")}, losses
        assert {name: configuration(vpp) for name, vpp in vpps.items()} == {
            name: without(each, gone, name) for name, each in made.items()
        }
    assert lab.traces() == untouched
    frames = sum(each.frames for each in streams)
    lab.report.append(
        f"lab: {len(whole)} lines made by hand, taken over while agents and a worker were killed, {changed}"
        f" changed, {removed} removed, the rest let go: {frames} frames, none lost, none twice, nothing"
        " foreign changed"
    )


def all_found(noc: Client, lines: list[HandmadeLine]) -> dict[HandmadeLine, Json]:
    """Return the lines as the portal shows them, once it shows all of them."""
    found: dict[HandmadeLine, Json] = {}
    by_access = {(*line.place(side)[:1], line.access(side)): line for line in lines for side in "az"}

    def all_are_found() -> bool:
        for shown in noc.found_lines():
            for end in (shown["a_end"], shown["z_end"]):
                if end and (line := by_access.get((end["router"], end["interface"]))):
                    found[line] = shown
        return len(found) == len(lines) and all(
            found[line]["standing"] == "complete" for line in lines if not line.odd
        )

    assert noc.wait(all_are_found, timeout_s=WAIT_S), found
    return found


def streams_over(lab: Lab, lines: Iterable[HandmadeLine]) -> tuple[ManyStreams, GeneratedStreams]:
    lines = list(lines)
    generated = [line for line in lines if line.tagging == "dot1ad"]
    others = [line for line in lines if line.tagging != "dot1ad"]
    places = {line.place(side) for line in others for side in "az"}
    generators = {
        place: customer
        for place in {line.place(side) for line in generated for side in "az"}
        if isinstance(customer := lab.customers[place], MemifCustomer)
    }
    some = next(iter(generators.values()))
    return (
        ManyStreams(others, {place: lab.wire(*place) for place in places}),
        GeneratedStreams(
            generated, some.vpp, {at: each.generator for at, each in generators.items()}, some.folder
        ),
    )


def named_by_vppcfg(lines: list[HandmadeLine]) -> dict[HandmadeLine, str]:
    names = vppcfg_descriptions(vppcfg_file(lines, "a").encode())
    return {line: names[line.access("a")] for line in lines}


def take_over(
    lab: Lab, noc: Client, found: dict[HandmadeLine, Json], names: dict[HandmadeLine, str]
) -> dict[HandmadeLine, str]:
    """Adopt the lines and return their ids, while both agents and a worker are killed and restarted.

    The agents are frozen until they are killed, so that each dies with a request that it has not answered.
    """
    wanted = [
        {"found_line": shown["id"], "description": names[line], "svc_mtu": 1500, "cir_bps": CIR_BPS}
        for line, shown in found.items()
    ]
    planned = noc.adopt_several(wanted, dry_run=True)
    assert [each for each in planned if each["refusal"]] == []
    family = lab.stack.family
    for agent in ("agent-rhino", "agent-hippo"):
        family[agent].freeze()
    outcomes = noc.adopt_several(wanted)
    for name in ("worker", "agent-rhino", "agent-hippo"):
        time.sleep(0.3)
        assert not all(noc.is_completed(each["order"]) for each in outcomes), f"all was over before {name}"
        family[name].end()
        family[name].restart()
    for each in outcomes:
        noc.wait_completed(each["order"], timeout_s=WAIT_S)
    return {line: each["vll"] for line, each in zip(found, outcomes, strict=True)}


def change(lab: Lab, vlls: list[str]) -> None:
    customer = lab.stack.client("customer")
    for order in [customer.change(vll, cir_bps=2 * CIR_BPS) for vll in vlls]:
        customer.wait_completed(order, timeout_s=WAIT_S)


def remove(lab: Lab, vlls: list[str]) -> None:
    customer = lab.stack.client("customer")
    for order in [customer.remove(vll) for vll in vlls]:
        customer.wait_completed(order, timeout_s=WAIT_S)


def let_go(noc: Client, vlls: Iterable[str]) -> None:
    for order in [noc.let_go(vll) for vll in vlls]:
        noc.wait_completed(order, timeout_s=WAIT_S)


def without_tags(shown: dict[str, list[str]]) -> dict[str, list[str]]:
    return {command: rows for command, rows in shown.items() if command != "tags"}


def without(shown: dict[str, list[str]], gone: Iterable[HandmadeLine], router: str) -> dict[str, list[str]]:
    """Return VPP's output without the rows that belong to these lines on the router."""
    names = [
        name
        for line in gone
        for side in "az"
        if line.router[side] == router
        for name in line.interfaces(side)
    ]
    keys = [f"vni {line.key}" for line in gone]
    return {
        command: [
            row
            for row in rows
            if not any(name in row.replace(":", " ").split() for name in names)
            and not any(f"{key} " in f"{row} " for key in keys)
        ]
        for command, rows in shown.items()
    }
