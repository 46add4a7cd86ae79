"""The number of leases by kind and state, and the number of free VNIs.

The states are: leased, in cool-down ("resting"), or waiting for a router's confirmation ("quarantined").
"""

from collections.abc import Iterator
from datetime import datetime

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from portal.allocation.models import PortVlanLease
from portal.allocation.pool_usage import pool_counts


def families(now: datetime) -> Iterator[Metric]:
    counts = pool_counts()
    leases = GaugeMetricFamily(
        "longline_leases",
        "Leases: leased, cooling down, or quarantined until a router confirms the removal.",
        labels=["pool", "state"],
    )
    pools = (("vni", counts.vnis), ("gre_key", counts.gre_keys), ("gre_pair", counts.gre_pairs))
    for pool, of_pool in pools:
        leases.add_metric([pool, "leased"], of_pool.leased)
        leases.add_metric([pool, "resting"], of_pool.resting)
        leases.add_metric([pool, "quarantined"], of_pool.quarantined)
    # VLAN leases have neither a cool-down nor a quarantine.
    leases.add_metric(["port_vlan", "leased"], PortVlanLease.objects.count())
    yield leases
    yield GaugeMetricFamily("longline_vnis_free", "VNIs that can be leased now.", counts.vni_free)
