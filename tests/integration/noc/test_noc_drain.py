"""A drained router: no new lines, no transit where another path exists, and a list of the remaining lines."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.core.network.encapsulations import Family
from portal.events.models import Event
from portal.inventory.models import BackboneLink, Port, Router
from portal.underlay.current_topology import current_topology
from portal.underlay.path_mtu import path_check
from portal.vll.errors import LinesAffected, RouterInMaintenance, RouterIsDrained
from portal.vll.models import Vll, VllEnd
from portal.vll.operations.modify_line import order_modify, order_suspend
from portal.vll.router_operations.actions import router_maintenance_set
from portal.vll.router_operations.drain import (
    DrainStep,
    drain_begin,
    drain_end,
    drain_progress,
    drain_step,
    ends_to_drain,
)
from tests.integration.isp import GBIT, Isp
from tests.integration.noc.test_noc_api import client
from tests.integration.orders import order
from tests.integration.router_answers import activate, left
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def begin(isp: Isp, router: str, user: User, **more: Any) -> Router:
    drain_begin(router=isp.routers[router], user=user, now=clock.now(), **more)
    isp.routers[router].refresh_from_db()
    return isp.routers[router]


def links_of_the_path(isp: Isp, a: str, z: str) -> set[str]:
    report = path_check(
        current_topology(now=clock.now()),
        isp.routers[a].pk,
        isp.routers[z].pk,
        family=Family.V4,
        any_single_failure=False,
    )
    return {link.name for link in report.used.primary}


def steps(router: Router) -> dict[str, str]:
    return {str(end.vll): drain_step(end) for end in ends_to_drain(router)}


def test_drained_router_accepts_no_new_lines(isp: Isp, alice: User, nora: User) -> None:
    router = begin(isp, "rhino", nora)
    assert router.maintenance_since == router.drained_since is not None
    with pytest.raises(RouterInMaintenance):
        order(isp, alice)


def test_paths_avoid_a_drained_router_except_to_its_ends(isp: Isp, nora: User) -> None:
    before = links_of_the_path(isp, "rhino", "zebra")
    assert before == {"rhino:bb-next — hippo:bb-prev", "hippo:bb-next — zebra:bb-prev"}
    begin(isp, "hippo", nora)
    around = links_of_the_path(isp, "rhino", "zebra")
    assert len(around) == 3
    assert not any("hippo" in name for name in around)
    assert links_of_the_path(isp, "rhino", "hippo") == {"rhino:bb-next — hippo:bb-prev"}


def test_paths_use_a_drained_router_where_no_other_path_exists(isp: Isp, nora: User) -> None:
    isp.links["panda-otter"].delete()
    begin(isp, "hippo", nora)
    assert len(links_of_the_path(isp, "rhino", "zebra")) == 2


def test_end_of_the_drain_restores_paths_and_keeps_maintenance(isp: Isp, nora: User) -> None:
    before = links_of_the_path(isp, "rhino", "zebra")
    router = begin(isp, "hippo", nora)
    with pytest.raises(RouterIsDrained):
        router_maintenance_set(router=router, on=False, user=nora, now=clock.now())
    drain_end(router=router, user=nora, now=clock.now())
    router.refresh_from_db()
    assert router.drained_since is None
    assert router.maintenance_since is not None
    assert links_of_the_path(isp, "rhino", "zebra") == before
    kinds = Event.objects.filter(router_id=router.pk).order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["router.maintenance_began", "router.drain_began", "router.drain_ended"]


def test_drain_that_breaks_lines_needs_confirmation_and_reports_them(
    isp: Isp, nora: User, dairy: Customer, vll: Vll, settings: Any
) -> None:
    # Planning checks the detour in advance; this deployment does not.
    settings.LONGLINE_MTU_POLICY = "exact"
    BackboneLink.objects.filter(pk=isp.links["panda-otter"].pk).update(a_ip_mtu=1400, z_ip_mtu=1400)
    Router.objects.update(agent_url="")
    far = Port.objects.create(
        router=isp.routers["zebra"], interface="c", customer=dairy, speed_bps=GBIT, bookable_bps=GBIT
    )
    VllEnd.objects.filter(vll=vll, side="z").update(port=far)
    with pytest.raises(LinesAffected) as refused:
        begin(isp, "hippo", nora)
    assert refused.value.lines == ["ZRH-AMS"]
    assert not Router.objects.filter(drained_since__isnull=False).exists()
    begin(isp, "hippo", nora, accept_affected=True)
    assert Event.objects.filter(kind="vll.not_carried", vll_id=vll.pk).count() == 1


def test_each_line_has_a_step_and_the_drain_ends_after_the_last_line(
    isp: Isp, alice: User, nora: User, vll: Vll, dairy: Customer
) -> None:
    router = begin(isp, "rhino", nora)
    assert steps(router) == {"ZRH-AMS": DrainStep.MOVE}
    assert not drain_progress(router).is_drained
    moved = {"port": isp.ports["hippo:host-cust2"].pk}
    order_modify(user=nora, vll=vll, changes={"a_end": moved}, now=clock.now())
    progress = drain_progress(router)
    assert (progress.carrying, progress.leaving, progress.is_drained) == (0, 1, False)
    activate(vll)
    left(vll, "a", router)
    progress = drain_progress(router)
    assert (progress.carrying, progress.leaving, progress.is_drained) == (0, 0, True)


def test_line_that_cannot_move_is_suspended(isp: Isp, alice: User, nora: User, vll: Vll) -> None:
    router = begin(isp, "rhino", nora)
    Router.objects.filter(name="hippo").update(maintenance_since=clock.now())
    assert steps(router) == {"ZRH-AMS": DrainStep.SUSPEND}
    order_suspend(user=nora, vll=vll, now=clock.now())
    assert steps(router) == {"ZRH-AMS": DrainStep.WAIT}
    activate(vll)
    assert steps(router) == {"ZRH-AMS": DrainStep.STOPPED}
    assert drain_progress(router).is_drained


def test_database_keeps_drain_and_maintenance_consistent(isp: Isp) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Router.objects.filter(name="rhino").update(drained_since=clock.now())


def test_page_starts_lists_suspends_and_ends(isp: Isp, nora: User, vll: Vll) -> None:
    url, noc = f"/noc/routers/{isp.routers['rhino'].pk}/drain/", signed_in(nora)
    assert "stub router of OSPF (RFC 6987)" in text(noc.get(url))
    said = text(noc.post(url, {"do": "begin"}, follow=True))
    assert "The drain has begun." in said
    assert "Draining since" in said
    assert "Ends that may still forward 1" in said
    assert "ZRH-AMS Alpine Dairy host-cust1" in said
    ports = text(noc.get(f"/vlls/{vll.pk}/change/"))
    assert "rhino:host-cust2 – 10 Gbit/s of 10 Gbit/s free, under maintenance" in ports
    assert "hippo:host-cust2 – 10 Gbit/s of 10 Gbit/s free " in ports
    assert "Drained: paths use it only" in text(noc.get(f"/noc/routers/{isp.routers['rhino'].pk}/"))
    said = text(noc.post(url, {"do": "suspend", "vll": str(vll.pk)}, follow=True))
    assert "An order is under way" in said
    activate(vll)
    said = text(noc.get(url))
    assert "Drained since" in said
    assert "Nothing to do: it is stopped" in said
    assert "rhino Drained" in text(noc.get("/routers/"))
    noc.post(url, {"do": "end"})
    assert "Begin the drain" in text(noc.get(url))
    assert "rhino Under maintenance" in text(noc.get("/routers/"))
    noc.post(url, {"do": "begin"})
    said = text(noc.post(url, {"do": "end-both"}, follow=True))
    assert "The drain and the maintenance are over: rhino takes new lines again." in said
    assert "Under maintenance" not in text(noc.get("/routers/"))
    assert noc.post(url, {"do": "dance"}).status_code == 400
    assert noc.post(url, {"do": "suspend", "vll": "x"}).status_code == 404


def test_page_of_a_router_without_lines_explains_the_drain(isp: Isp, nora: User) -> None:
    url, noc = f"/noc/routers/{isp.routers['rhino'].pk}/drain/", signed_in(nora)
    assert "stub router of OSPF (RFC 6987)" in text(noc.get(url))
    assert "stub router of OSPF (RFC 6987)" not in text(noc.post(url, {"do": "begin"}, follow=True))


def test_maintenance_ends_as_requested_after_another_user_ended_the_drain(isp: Isp, nora: User) -> None:
    router = begin(isp, "rhino", nora)
    drain_end(router=router, user=nora, now=clock.now())
    said = text(signed_in(nora).post(f"/noc/routers/{router.pk}/drain/", {"do": "end-both"}, follow=True))
    assert "The drain and the maintenance are over" in said
    router.refresh_from_db()
    assert router.maintenance_since is None


def test_api_drains_a_router(isp: Isp, nora: User, vll: Vll) -> None:
    api, url = client(nora), f"/api/v1/routers/{isp.routers['rhino'].pk}"

    def act(do: str, **more: Any) -> Any:
        return api.post(f"{url}/actions", {"do": do, **more}, format="json")

    assert act("drain-begin").json()["drained_since"]
    assert api.get(f"{url}/drain").json()["carrying"] == 1
    (row,) = api.get(f"{url}/ends").json()["results"]
    assert (row["vll"], row["side"], row["step"]) == (str(vll.pk), "a", "move")
    assert act("maintenance-end").status_code == 409
    assert act("drain-end").json()["maintenance_since"]
    assert act("maintenance-end").json()["maintenance_since"] is None
    assert act("hold").json()["held_since"]
    assert act("release").json()["held_since"] is None
    assert act("retry").status_code == 200
    assert act("dance").status_code == 422


def test_only_the_noc_drains(isp: Isp, ada: User) -> None:
    url = f"/api/v1/routers/{isp.routers['rhino'].pk}"
    api = client(ada)
    assert api.post(f"{url}/actions", {"do": "drain-begin"}, format="json").status_code == 403
    assert api.get(f"{url}/drain").status_code == api.get(f"{url}/ends").status_code == 403
    assert signed_in(ada).get(f"/noc/routers/{isp.routers['rhino'].pk}/drain/").status_code == 403
