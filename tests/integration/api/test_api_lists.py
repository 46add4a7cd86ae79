"""Lists: filters, unknown filter names, and pages without gaps or repetitions."""

from typing import Any

import pytest
from rest_framework import serializers

from portal.accounts.models import User
from portal.api.v1.lines.serializers import PrecomputedReads
from portal.core import clock
from portal.inventory.models import ObservedRouter
from portal.vll.models import Order, Vll, VllEnd
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db


@pytest.fixture
def tunnel(isp: Isp, alice: User) -> Vll:
    """Return a line in service from Rhino to Hippo, VLANs 100 and 200."""
    vll = order(isp, alice, z_end=end(isp, "hippo:host-cust1", outer=200), description="Milk 100%").vll
    activate(vll)
    return vll


@pytest.fixture
def local(isp: Isp, alice: User) -> Vll:
    """Return a line between two ports of Rhino that is still being set up."""
    ends = {
        "a_end": end(isp, "rhino:host-cust1", "qinq", outer=300, inner_vlan=301),
        "z_end": end(isp, "rhino:host-cust2", "qinq", outer=300, inner_vlan=301),
    }
    return order(isp, alice, description="Cheese", **ends).vll


def ids(user: User, path: str, **query: Any) -> list[str]:
    answer = client(user).get(f"/api/v1/{path}", query)
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


@pytest.mark.parametrize(
    ("query", "which"),
    [
        ({"lifecycle": "active"}, "tunnel"),
        ({"lifecycle": "pendingActive"}, "local"),
        ({"in_sync": "true"}, "tunnel"),
        ({"in_sync": "false"}, "local"),
        ({"router": "hippo"}, "tunnel"),
        ({"router": "rhino"}, "both"),
        ({"router": "zebra"}, "none"),
        ({"vlan": 200}, "tunnel"),
        ({"vlan": 301}, "local"),
        ({"customer": "Alpine Dairy"}, "both"),
        ({"customer": "Basel Bakery"}, "none"),
        ({"oper_status": "op-down"}, "none"),
        ({"q": "milk"}, "tunnel"),
        ({"q": "100%"}, "tunnel"),
        ({"q": "_"}, "none"),
        ({"q": "cust2"}, "local"),
        ({"q": "301"}, "local"),
        ({"q": "rhino"}, "both"),
        ({"router": "rhino", "lifecycle": "active"}, "tunnel"),
    ],
)
def test_filter_narrows_the_list(alice: User, tunnel: Vll, local: Vll, query: Any, which: str) -> None:
    wanted = {"tunnel": [tunnel], "local": [local], "both": [local, tunnel], "none": []}[which]
    assert ids(alice, "vlls", **query) == [str(vll.pk) for vll in wanted]


def test_vll_is_found_by_port_vni_and_ids(isp: Isp, alice: User, tunnel: Vll, local: Vll) -> None:
    for query in (
        {"port": isp.ports["hippo:host-cust1"].pk},
        {"vni": tunnel.vni},
        {"q": tunnel.vni},
        {"q": tunnel.pk},
        {"q": tunnel.orders.get().pk},
    ):
        assert ids(alice, "vlls", **query) == [str(tunnel.pk)]


def test_search_shows_a_stranger_nothing(charlie: User, tunnel: Vll) -> None:
    for text in ("milk", "rhino", tunnel.vni, tunnel.pk, tunnel.orders.get().pk):
        assert ids(charlie, "vlls", q=text) == []
    assert ids(charlie, "orders", vll=tunnel.pk) == []


def test_filters_narrow_orders_and_ports(isp: Isp, alice: User, tunnel: Vll, local: Vll) -> None:
    done, waiting = str(tunnel.orders.get().pk), str(local.orders.get().pk)
    assert ids(alice, "orders", state="completed") == [done]
    assert ids(alice, "orders", vll=local.pk) == [waiting]
    assert ids(alice, "orders", action="add") == [waiting, done]
    assert ids(alice, "orders", action="delete") == []
    hippos = sorted(port.pk for name, port in isp.ports.items() if name.startswith("hippo"))
    assert ids(alice, "ports", router="hippo") == hippos
    assert ids(alice, "ports", q="HIPPO") == hippos
    assert len(ids(alice, "ports", site="Zürich")) == 4
    assert ids(alice, "ports", site="Bern") == []


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("vlls", "colour=red", "colour"),
        ("vlls", "lifecycle=dead", "lifecycle"),
        ("vlls", "in_sync=maybe", "in_sync"),
        ("vlls", "vlan=0", "vlan"),
        ("vlls", "vlan=4095", "vlan"),
        ("vlls", "vni=16777216", "vni"),
        ("vlls", "vni=1.0", "vni"),
        ("vlls", "vni=%201", "vni"),
        ("vlls", "port=99999999999999999999", "port"),
        ("vlls", "q=", "q"),
        ("vlls", "q=%00", "q"),
        ("vlls", "vni=1&vni=2", "vni"),
        ("orders", "vll=7", "vll"),
        ("orders", "lifecycle=active", "lifecycle"),
        ("sites", "name=x", "name"),
    ],
)
def test_invalid_filter_is_422_and_named(isp: Isp, alice: User, path: str, query: str, field: str) -> None:
    answer = client(alice).get(f"/api/v1/{path}?{query}")
    assert answer.status_code == 422, answer.content
    assert [entry["field"] for entry in answer.json()["errors"]] == [field]


def test_rows_with_one_time_are_paged_without_gap_or_repeat(isp: Isp, alice: User) -> None:
    now = clock.now()
    for vlan in range(1, 8):
        ends = {
            side: end(isp, f"{name}:host-cust1", outer=vlan)
            for side, name in (("a_end", "rhino"), ("z_end", "hippo"))
        }
        order(isp, alice, cir_bps=1000, now=now, **ends)
    for path, rows in (("vlls", Vll.objects.order_by("-id")), ("orders", Order.objects.order_by("-id"))):
        url, seen = f"/api/v1/{path}?limit=3", []
        while url:
            page = client(alice).get(url).json()
            seen.append([row["id"] for row in page["results"]])
            url = page["next"]
        assert [len(page) for page in seen] == [3, 3, 1]
        assert [row for page in seen for row in page] == [str(pk) for pk in rows.values_list("pk", flat=True)]


def test_filter_applies_to_the_next_page(isp: Isp, alice: User, tunnel: Vll, local: Vll) -> None:
    page = client(alice).get("/api/v1/vlls", {"router": "rhino", "limit": 1}).json()
    assert "router=rhino" in page["next"]


def test_short_text_matches_the_beginning_of_a_word(alice: User, tunnel: Vll, local: Vll) -> None:
    assert ids(alice, "vlls", q="mi") == ids(alice, "vlls", q="10") == [str(tunnel.pk)]
    assert ids(alice, "vlls", q="lk") == []


def test_text_that_matches_many_ports_finds_lines(
    alice: User, charlie: User, tunnel: Vll, local: Vll, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [ids(alice, "vlls", q=text) for text in ("cust1", "cust2", "rhino", "100", "200", "milk")]
    monkeypatch.setattr("portal.vll.queries._FEW_PORTS", -1)
    assert [ids(alice, "vlls", q=text) for text in ("cust1", "cust2", "rhino", "100", "200", "milk")] == few
    assert ids(charlie, "vlls", q="rhino") == []


@pytest.mark.parametrize("facts", [{}, {"path_state": "up", "path_since_ms": 1_790_000_000_123}])
def test_page_of_lines_equals_the_frameworks_output(
    alice: User, tunnel: Vll, local: Vll, facts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ObservedRouter.objects.update(path_watch=True)
    VllEnd.objects.filter(vll=tunnel).update(policed=bool(facts), **facts)
    pages = ["vlls", f"vlls/{tunnel.pk}", f"vlls/{local.pk}"]
    written = [client(alice).get(f"/api/v1/{page}").json() for page in pages]
    assert [line["id"] for line in written[0]["results"]] == [str(local.pk), str(tunnel.pk)]
    assert (written[1]["path"]["state"] == "up") == bool(facts)
    plain = serializers.Serializer.to_representation
    monkeypatch.setattr(PrecomputedReads, "to_representation", plain)
    assert [client(alice).get(f"/api/v1/{page}").json() for page in pages] == written


def test_longer_page_of_lines_uses_no_more_serializers(
    isp: Isp, alice: User, tunnel: Vll, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of all fields for each line would cost more than the rest of the response."""
    activate(order(isp, alice, a_end=end(isp, "rhino:host-cust2")).vll)
    made: list[type] = []
    make = serializers.BaseSerializer.__init__

    def counted(self: Any, *args: Any, **kwargs: Any) -> None:
        made.append(type(self))
        make(self, *args, **kwargs)

    monkeypatch.setattr(serializers.BaseSerializer, "__init__", counted)
    assert ids(alice, "vlls", vni=tunnel.vni) == [str(tunnel.pk)]
    of_one, made[:] = list(made), []
    assert len(ids(alice, "vlls")) == 2
    assert made == of_one


class _Missing(PrecomputedReads, serializers.Serializer[Any]):
    name = serializers.CharField(read_only=True)
    label = serializers.CharField(read_only=True)
    owner = serializers.CharField(source="owner.name", default="nobody")


def test_precomputed_read_keeps_the_frameworks_rules_for_missing_values() -> None:
    class Row:
        name = "eth1"

        def label(self) -> str:
            return self.name.upper()

    assert _Missing().to_representation(Row()) == {"name": "eth1", "label": "ETH1", "owner": "nobody"}
    with_owner = Row()
    vars(with_owner)["owner"] = Row()
    assert _Missing().to_representation(with_owner)["owner"] == "eth1"
