"""Descriptions of interfaces from a vppcfg file of any content."""

import pytest

from portal.uploads.errors import VppcfgUnreadable
from portal.uploads.vppcfg_file import vppcfg_descriptions

SUB_INTERFACES = b"""
interfaces:
  TenGigabitEthernet3/0/0:
    description: "to the exchange"
    sub-interfaces:
      100: {description: 0017}
      0200: {lcp: xe0.200}
      300: {description: "no\\0thing"}
  Gi1: null
"""


def test_interfaces_have_vpps_names_and_texts_are_unchanged() -> None:
    assert vppcfg_descriptions(SUB_INTERFACES) == {
        "TenGigabitEthernet3/0/0": "to the exchange",
        "TenGigabitEthernet3/0/0.100": "0017",
        "TenGigabitEthernet3/0/0.300": "nothing",
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"interfaces: {Gi1: &a {description: x}, Gi2: *a}", 1),
        (b"interfaces:\n  Gi1: [", 2),
        (b"bonds: {}", 1),
        (b"\xff\xfe\xff", 1),
        (b"[" * 5000, 1),
    ],
)
def test_an_unreadable_file_is_refused(text: bytes, line: int) -> None:
    with pytest.raises(VppcfgUnreadable) as refused:
        vppcfg_descriptions(text)
    assert refused.value.line == line
