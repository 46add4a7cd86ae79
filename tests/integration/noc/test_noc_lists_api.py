"""The NOC's lists in the API have the same filters as its pages."""

from typing import Any

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import BackboneLink, Router, Site
from portal.vll.router_operations.actions import router_lock_set
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db


@pytest.fixture
def bern(isp: Isp, nora: User) -> Site:
    """Panda is in Bern, sending to Hippo is paused, and one link is out of service."""
    site = Site.objects.create(name="Bern")
    Router.objects.filter(name="panda").update(site=site)
    router_lock_set(router=isp.routers["hippo"], on=True, user=nora, now=clock.now())
    BackboneLink.objects.filter(pk=isp.links["otter-rhino"].pk).update(in_service=False)
    return site


@pytest.mark.parametrize(
    ("kind", "query", "names"),
    [
        ("sites", {"q": "ber"}, ["Bern"]),
        ("routers", {"site": "Bern"}, ["panda"]),
        ("routers", {"status": "held"}, ["hippo"]),
        ("routers", {"status": "in-service", "q": "zEBR"}, ["zebra"]),
        ("routers", {"status": "maintenance"}, []),
        ("links", {"router": "hippo"}, ["rhino", "hippo"]),
        ("links", {"in_service": "false"}, ["otter"]),
        ("links", {"q": "zebra"}, ["hippo", "zebra"]),
    ],
)
def test_filter_narrows_a_list(
    bern: Site, nora: User, kind: str, query: dict[str, str], names: list[str]
) -> None:
    answer = client(nora).get(f"/api/v1/{kind}", query)
    rows: list[dict[str, Any]] = answer.json()["results"]
    assert [row.get("name") or row["a_router"] for row in rows] == names


@pytest.mark.parametrize("query", [{"status": "asleep"}, {"colour": "red"}])
def test_unknown_filter_is_refused(bern: Site, nora: User, query: dict[str, str]) -> None:
    assert client(nora).get("/api/v1/routers", query).status_code == 422
