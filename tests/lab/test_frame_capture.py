"""The lab's frame capture, tried on a veth pair, distinguishes frames by every byte."""

import errno
import secrets
from collections.abc import Iterator

import pytest

from devstack.routers import netns
from devstack.routers.vpp_network import UNI, VETH_MTU
from devstack.traffic import DOT1AD, Tag, Wire, difference, frame
from tests.lab import pcap
from tests.lab.combinations import PORT_MAX_FRAME, STATIONS

needs_namespaces = pytest.mark.skipif(netns.why_unusable() is not None, reason=str(netns.why_unusable()))
Wires = tuple[Wire, Wire]


@pytest.fixture
def wires() -> Iterator[Wires]:
    with netns.namespace("left") as left, netns.namespace("right") as right:
        netns.veth((left, UNI), (right, UNI), mtu=VETH_MTU)
        with Wire(left, UNI) as a, Wire(right, UNI) as z:
            yield a, z


def frame_of(size: int, *tags: Tag) -> bytes:
    return frame(
        destination=STATIONS["z"],
        source=STATIONS["a"],
        tags=tags,
        payload=secrets.token_bytes(size - 14 - 4 * len(tags)),
    )


@needs_namespaces
@pytest.mark.parametrize("size", [60, 1514, PORT_MAX_FRAME])
@pytest.mark.parametrize(
    "tags",
    [
        (),
        (Tag(100),),
        (Tag(0),),
        (Tag(100), Tag(200)),
        (Tag(100, DOT1AD), Tag(200)),
        (Tag(1, DOT1AD), Tag(2), Tag(3)),
    ],
    ids=["untagged", "dot1q", "priority", "qinq", "dot1ad", "three"],
)
def test_a_frame_arrives_with_all_its_tags_in_place(wires: Wires, size: int, tags: tuple[Tag, ...]) -> None:
    a, z = wires
    whole = frame_of(size, *tags)
    a.send(whole)
    assert z.receive(timeout_s=2) == whole


@needs_namespaces
def test_a_frame_with_another_outer_type_is_distinguished(wires: Wires) -> None:
    a, z = wires
    sent = frame_of(100, Tag(100, DOT1AD))
    a.send(sent)
    complaint = z.expect(sent[:12] + Tag(100).encode() + sent[16:], timeout_s=0.5)
    assert complaint is not None
    assert "differs from byte 12" in complaint


@needs_namespaces
def test_frames_that_came_before_draining_do_not_count(wires: Wires) -> None:
    a, z = wires
    whole = frame_of(100)
    a.send(whole)
    assert z.expect(whole, timeout_s=2) is None
    a.send(whole)
    z.drain()
    assert z.expect(whole, timeout_s=0.2) == "no frame came instead of 100 bytes"


@needs_namespaces
def test_a_wire_does_not_receive_its_own_frames(wires: Wires) -> None:
    a, _ = wires
    a.send(frame_of(100))
    assert a.receive(timeout_s=0.2) is None


@needs_namespaces
def test_a_frame_beyond_the_veth_is_refused_rather_than_cut(wires: Wires) -> None:
    a, _ = wires
    with pytest.raises(OSError) as refusal:
        a.send(frame_of(VETH_MTU + 14 + 5))
    assert refusal.value.errno == errno.EMSGSIZE


@needs_namespaces
def test_a_namespace_sends_no_frames_unprompted(wires: Wires) -> None:
    _, z = wires
    assert z.receive(timeout_s=1.5) is None


def test_the_difference_names_the_first_byte() -> None:
    assert difference(b"abcd", [b"abXd", b"abcd"]) == (
        "2 other frame(s) came; the first has 4 bytes instead of 4"
        " and differs from byte 2: 5864 instead of 6364"
    )


def test_a_pcap_file_yields_its_complete_frames_only(tmp_path) -> None:
    file = tmp_path / "some.pcap"
    frames = [frame_of(60), frame_of(9022)]
    pcap.write(file, frames)
    assert pcap.read(file) == frames
    file.write_bytes(file.read_bytes()[:-1])
    assert pcap.read(file) == frames[:1]
    assert pcap.read(tmp_path / "absent.pcap") == []
