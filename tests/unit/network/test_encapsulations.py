import csv
from pathlib import Path

import pytest

from portal.core.network.encapsulations import (
    AUTO_TUNNELS,
    COST,
    TUNNELS,
    Cost,
    Encapsulation,
    Family,
    Transport,
)

COST_TABLE = Path(__file__).parents[2] / "contract" / "encapsulation-cost.csv"


def test_the_cost_table_is_the_measured_one() -> None:
    with COST_TABLE.open(newline="") as table:
        measured = {
            Transport(row["encapsulation"] + row["family"]): Cost(
                float(row["mpps_per_core"]), float(row["cycles_per_packet"])
            )
            for row in csv.DictReader(table)
        }
    assert measured == COST
    assert set(COST) == set(Transport)


@pytest.mark.parametrize(
    ("text", "encapsulation", "family"),
    [
        ("l2xc", Encapsulation.L2XC, None),
        ("vxlan4", Encapsulation.VXLAN, Family.V4),
        ("vxlan6", Encapsulation.VXLAN, Family.V6),
        ("geneve4", Encapsulation.GENEVE, Family.V4),
        ("geneve6", Encapsulation.GENEVE, Family.V6),
        ("gre4", Encapsulation.GRE, Family.V4),
        ("gre6", Encapsulation.GRE, Family.V6),
    ],
)
def test_a_transport_is_an_encapsulation_and_a_family(
    text: str, encapsulation: Encapsulation, family: Family | None
) -> None:
    transport = Transport(text)
    assert (transport.encapsulation, transport.family) == (encapsulation, family)
    assert str(transport) == text
    assert Transport.of(encapsulation, family) is transport


@pytest.mark.parametrize("text", ["", "auto", "vxlan", "l2xc4", "vxlan5", "VXLAN4", "gre46"])
def test_any_other_text_is_no_transport(text: str) -> None:
    with pytest.raises(ValueError, match="not a valid Transport"):
        Transport(text)


@pytest.mark.parametrize(
    ("encapsulation", "family"),
    [(Encapsulation.L2XC, 4), (Encapsulation.VXLAN, None), (Encapsulation.GRE, 5)],
)
def test_a_pair_that_does_not_exist_is_refused(encapsulation: Encapsulation, family: int | None) -> None:
    with pytest.raises(ValueError, match="not a valid Transport"):
        Transport.of(encapsulation, family)


def test_only_vxlan_and_geneve_lease_a_vni() -> None:
    assert {e for e in Encapsulation if e.leases_vni} == {Encapsulation.VXLAN, Encapsulation.GENEVE}


def test_auto_tries_the_cheapest_tunnel_first_and_gre_last() -> None:
    spreading = (Transport.VXLAN4, Transport.GENEVE4, Transport.VXLAN6, Transport.GENEVE6)
    assert list(AUTO_TUNNELS) == [*spreading, Transport.GRE4, Transport.GRE6]
    assert set(TUNNELS) == set(AUTO_TUNNELS)
