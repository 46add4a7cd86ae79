"""No resource is free while a router may still use it, after any sequence of orders.

Routers may be silent, refuse intents, or be declared dead in between.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Count, Q
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from portal.accounts.models import Customer, User
from portal.allocation.models import (
    BandwidthBooking,
    CoreBooking,
    GreKeyLease,
    GrePairLease,
    PortVlanLease,
    VniLease,
)
from portal.allocation.packet_capacity import end_load
from portal.allocation.tunnel_leases import cooled_down_leases_free
from portal.allocation.vlan_leases import tag_keys
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.network.encapsulations import Encapsulation, Transport
from portal.core.network.vlan_tags import Tagging, Tags
from portal.inventory.models import ObservedRoute, ObservedRouter, Port, Router, TunnelAddress
from portal.vll.line_spec import EndSpec, LineSpec
from portal.vll.models import Order, Vll, VllTombstone
from portal.vll.operations.add_line import order_add
from portal.vll.operations.line_removal import (
    coolings_off_end,
    dead_routers_settle,
    order_delete,
    order_restore,
)
from portal.vll.operations.modify_line import order_modify, order_resume, order_suspend
from portal.vll.operations.order_approval import order_approve, order_reject
from portal.vll.operations.order_endings import order_cancel, order_force_end
from portal.vll.router_operations.actions import router_declare_alive, router_declare_dead
from portal.vll.states import IN_SERVICE, TERMINAL_LIFECYCLES, TERMINAL_ORDER_STATES, Lifecycle, OrderState
from provisioning.intent_document import IntendedEnd
from tests.integration.in_memory_routers import InMemoryRouter
from tests.integration.isp import GBIT, Isp, build_isp, member
from tests.integration.leases import owners, sums_are_right
from tests.integration.orders import modify, order
from tests.integration.router_answers import activate, answer, left

pytestmark = pytest.mark.django_db
NAMES = ("rhino", "hippo", "zebra")
MOST_LINES = 4
NEXT_ORDER = {
    Lifecycle.ACTIVE: order_suspend,
    Lifecycle.SUSPENDED: order_resume,
    Lifecycle.PENDING_TERMINATE: order_restore,
}
# Orders above this rate need approval.
APPROVED_UP_TO = GBIT

which = st.integers(0, 3)
usually = st.sampled_from([True, True, True, False])
ports = st.sampled_from([f"{name}:host-cust{number}" for name in NAMES for number in (1, 2)])
rates = st.sampled_from([GBIT // 2, GBIT, 2 * GBIT])
transports = st.sampled_from(["auto", "auto", "l2xc", "vxlan4", "geneve4", "gre4", "gre6"])
_VLAN_10 = {"tagging": Tagging.DOT1Q, "outer_vlan": 10}
tags = st.one_of(
    st.just({"tagging": Tagging.UNTAGGED, "outer_vlan": None}),
    st.builds(
        lambda vlan, exact: {"tagging": Tagging.DOT1Q, "outer_vlan": vlan, "exact_match": exact},
        st.sampled_from([10, 20, "any", "any"]),
        st.booleans(),
    ),
    st.builds(
        lambda inner: {"tagging": Tagging.QINQ, "outer_vlan": 10, "inner_vlan": inner},
        st.sampled_from([1, 2]),
    ),
)


def build_world() -> tuple[Isp, User, User]:
    """Create Rhino, Hippo and Zebra with agents. Each router reaches the others at two IPv4 addresses."""
    dairy = Customer.objects.create(
        name="Alpine Dairy", created_at=clock.now(), approve_up_to_bps=APPROVED_UP_TO
    )
    isp = build_isp(owner=dairy, agents=NAMES)
    for number, name in enumerate(NAMES, start=1):
        address = f"10.254.0.{number}"
        TunnelAddress.objects.create(router=isp.routers[name], address=address)
        for other in set(NAMES) - {name}:
            ObservedRoute.objects.create(router=isp.routers[other], address=address, reachable=True)
    nina = User.objects.create_user("nina", noc_role="nocAdmin")
    return isp, member("alice", dairy, "operator"), nina


@pytest.fixture
def isp(dairy: Customer) -> Isp:
    return build_isp(owner=dairy, agents=NAMES)


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    """Return an active VXLAN line from Rhino to Hippo."""
    placed = order(isp, alice, transport="vxlan4").vll
    activate(placed)
    return placed


def test_vni_of_a_terminated_line_is_not_free_before_an_old_router_has_confirmed(
    isp: Isp, alice: User, vll: Vll
) -> None:
    modify(alice, vll, transport="vxlan4", a_end={"port": isp.ports["zebra:host-cust1"].pk})
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now())
    for side in "az":
        answer(vll, side, "removed")
    assert vll.lifecycle == "terminated"
    lease = VniLease.objects.get(vni=vll.vni)
    assert (lease.released_at is not None, lease.free_at) == (True, None)
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM allocation_vnilease")
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    left(vll, "a", isp.routers["rhino"])
    assert VniLease.objects.get(vni=vll.vni).free_at is not None


def test_vni_is_not_free_while_the_line_continues_with_another_transport(
    isp: Isp, alice: User, vll: Vll
) -> None:
    vni = vll.vni
    modify(alice, vll, transport="vxlan4", a_end={"port": isp.ports["zebra:host-cust1"].pk})
    activate(vll)
    modify(alice, vll, transport="gre4")
    activate(vll)
    pair = GrePairLease.objects.get()
    assert VniLease.objects.get(vni=vni).free_at is None
    modify(alice, vll, transport="vxlan4")
    activate(vll)
    assert VniLease.objects.get(vni=vni).free_at is None
    # Rhino never had that tunnel, which connected Zebra and Hippo.
    pair.refresh_from_db()
    assert pair.free_at is not None
    left(vll, "a", isp.routers["rhino"])
    assert VniLease.objects.get(vni=vni).free_at is not None


class Histories(RuleBasedStateMachine):
    """The actions of customers, the NOC and the portal's sweeps, and their effects on the routers."""

    @initialize(silent=st.sampled_from([None, 0, 1, 2]))
    def begin(self, silent: int | None) -> None:
        self.transaction = transaction.atomic()
        self.transaction.__enter__()
        self.now = clock.now()
        self.isp, self.alice, self.nina = build_world()
        self.routers = [InMemoryRouter(self.isp.routers[name]) for name in NAMES]
        self.add("rhino:host-cust1", "hippo:host-cust1", _VLAN_10, _VLAN_10, GBIT, "vxlan4", True)
        self.add("zebra:host-cust1", "hippo:host-cust2", _VLAN_10, _VLAN_10, GBIT, "gre4", True)
        assert len(self.at_rest(Lifecycle.ACTIVE)) == 2
        if silent is not None:
            self.routers[silent].reachable = False

    def attempt(self, operation: Callable[..., Any], **values: Any) -> Any:
        """Run the operation. A refusal changes nothing."""
        self.now += timedelta(seconds=1)
        with suppress(DomainError):
            return operation(**values, now=self.now)
        return None

    def order(self, soon: bool, operation: Callable[..., Any], **values: Any) -> Any:
        """Order something. ``soon``: the reachable routers get their intents before the next action."""
        result = self.attempt(operation, **values)
        if soon and result is not None:
            self.send_all()
        return result

    def end(self, port: str, picked: dict[str, Any]) -> EndSpec:
        return EndSpec(port=self.isp.ports[port].pk, **picked)

    # Customers.

    @precondition(lambda self: Vll.objects.exclude(lifecycle__in=TERMINAL_LIFECYCLES).count() < MOST_LINES)
    @rule(a=ports, z=ports, a_tags=tags, z_tags=tags, cir_bps=rates, transport=transports, soon=usually)
    def add(self, a: str, z: str, a_tags: Any, z_tags: Any, cir_bps: int, transport: str, soon: bool) -> None:
        self.order(
            soon,
            order_add,
            user=self.alice,
            spec=LineSpec(
                a_end=self.end(a, a_tags),
                z_end=self.end(z, z_tags),
                svc_mtu=1500,
                cir_bps=cir_bps,
                transport=transport,
            ),
        )

    @precondition(lambda self: self.at_rest(*IN_SERVICE))
    @rule(
        number=which, side=st.sampled_from("az"), port=which, transport=st.none() | transports, soon=usually
    )
    def move(self, number: int, side: str, port: int, transport: str | None, soon: bool) -> None:
        vll = self.at_rest(*IN_SERVICE, number=number)
        ends = {end.side: end for end in vll.ends.select_related("port")}
        # Usually lines move away from a silent router, as in practice.
        side = next((each for each in "az" if ends[each].port.router_id in self.silent()), side)
        ports = [port for port in self.isp.ports.values() if port.router_id not in self.silent()]
        there = [port for port in ports if port.router_id != ends[side].port.router_id]
        if not there:
            return
        tagged = ends[side].tagging != Tagging.UNTAGGED
        end = {"port": there[port % len(there)].pk, "outer_vlan": "any" if tagged else None}
        self.modify(vll, soon, **{f"{side}_end": end, "transport": transport or "auto"})

    @precondition(lambda self: self.at_rest(*IN_SERVICE))
    @rule(
        number=which,
        transport=st.none() | transports,
        side=st.sampled_from("az"),
        picked=st.none() | tags,
        cir_bps=st.none() | rates,
        soon=usually,
    )
    def change_in_place(
        self, number: int, transport: str | None, side: str, picked: Any, cir_bps: int | None, soon: bool
    ) -> None:
        end = picked and {"inner_vlan": None, "exact_match": True, **picked}
        vll = self.at_rest(*IN_SERVICE, number=number)
        self.modify(vll, soon, transport=transport, cir_bps=cir_bps, **{f"{side}_end": end})

    def modify(self, vll: Vll, soon: bool, **changes: Any) -> None:
        wanted = {name: value for name, value in changes.items() if value is not None}
        self.order(soon, order_modify, user=self.alice, vll=vll, changes=wanted)

    @precondition(lambda self: self.at_rest(*NEXT_ORDER))
    @rule(number=which, soon=usually)
    def suspend_or_resume(self, number: int, soon: bool) -> None:
        vll = self.at_rest(*NEXT_ORDER, number=number)
        self.order(soon, NEXT_ORDER[vll.lifecycle], user=self.alice, vll=vll)

    @precondition(lambda self: self.at_rest(*IN_SERVICE))
    @rule(number=which, cooling_off=st.sampled_from([timedelta(0), timedelta(hours=1)]), soon=usually)
    def remove(self, number: int, cooling_off: timedelta, soon: bool) -> None:
        vll = self.at_rest(*IN_SERVICE, number=number)
        self.order(soon, order_delete, user=self.alice, vll=vll, cooling_off=cooling_off)

    @precondition(lambda self: self.open_orders())
    @rule(number=which, cancelled=usually, by_force=usually, soon=usually)
    def end_an_order(self, number: int, cancelled: bool, by_force: bool, soon: bool) -> None:
        order = self.open_order(number)
        if cancelled:
            self.order(soon, order_cancel, user=self.alice, order=order)
        if by_force:
            self.attempt(order_force_end, user=self.nina, order=order, reason="it burnt down")

    # The NOC.

    @precondition(lambda self: self.open_orders(state=OrderState.PENDING_APPROVAL))
    @rule(number=which, approved=usually, soon=usually)
    def decide(self, number: int, approved: bool, soon: bool) -> None:
        order = self.open_order(number, state=OrderState.PENDING_APPROVAL)
        if approved:
            self.order(soon, order_approve, user=self.nina, order=order)
        else:
            self.attempt(order_reject, user=self.nina, order=order, reason="no")

    @rule(number=which, dead=usually)
    def declare(self, number: int, dead: bool) -> None:
        router = self.routers[number % len(self.routers)].router
        if dead:
            self.attempt(router_declare_dead, user=self.nina, router=router, reason="it burnt down")
            dead_routers_settle(now=self.now)
        else:
            self.attempt(router_declare_alive, user=self.nina, router=router)
            # The maintenance continues until somebody ends it.
            Router.objects.filter(pk=router.pk, dead_since=None).update(maintenance_since=None)

    # Routers, and the portal's automatic work.

    @rule(number=which, has=st.booleans())
    def upgrade(self, number: int, has: bool) -> None:
        """Upgrade the VPP to one with GRE keys, or downgrade it."""
        router = self.routers[number % len(self.routers)].router
        ObservedRouter.objects.filter(router=router).update(gre_keys=has)

    @rule(number=which, how=st.sampled_from(["silent", "silent", "refusing", "well"]))
    def change_router(self, number: int, how: str) -> None:
        router = self.routers[number % len(self.routers)]
        router.reachable, router.refusing = how != "silent", how == "refusing"
        self.send_all()

    @rule(number=which, arrives=st.sampled_from(["later", "never"]))
    def send(self, number: int, arrives: str) -> None:
        """Deliver the previous answer of the router, and send the next intent."""
        router = self.routers[number % len(self.routers)]
        router.answer(now=self.now)
        router.send()
        if arrives == "never":
            router.on_its_way = None

    def send_all(self) -> None:
        for router in self.routers:
            router.send()
            router.answer(now=self.now)

    @rule(passes=st.sampled_from([timedelta(seconds=5), timedelta(days=2)]))
    def sweep(self, passes: timedelta) -> None:
        self.now += passes
        for part in (coolings_off_end, dead_routers_settle, cooled_down_leases_free):
            part(now=self.now)

    # Invariants, and the state at the end.

    @invariant()
    def resources_of_routers_are_leased_by_their_lines(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        wrong = [
            f"{router.router} still has {vll} {side}: {what}"
            for router in self.routers
            for (vll, side), (row, cir_bps) in router.built.items()
            for what in not_leased(router.router, row, cir_bps)
        ]
        assert wrong == []
        assert sums_are_right()

    def teardown(self) -> None:
        try:
            if self.transaction is not None:
                self.recover_and_check_that_nothing_is_left()
        finally:
            transaction.set_rollback(True)
            self.transaction.__exit__(None, None, None)

    def recover_and_check_that_nothing_is_left(self) -> None:
        """Let every router return and carry out its intent. Then everything that no line needs is free."""
        for pending in Order.objects.filter(state=OrderState.PENDING_APPROVAL):
            self.attempt(order_reject, user=self.nina, order=pending, reason="no")
        for number, router in enumerate(self.routers):
            self.declare(number, dead=False)
            router.reachable, router.refusing, router.on_its_way = True, False, None
        for _ in range(4):
            self.send_all()
        assert not Order.objects.exclude(state__in=TERMINAL_ORDER_STATES).exists()
        assert not VllTombstone.objects.exists()
        self.resources_of_routers_are_leased_by_their_lines()
        alive = Vll.objects.exclude(lifecycle__in=TERMINAL_LIFECYCLES)
        assert {vll for router in self.routers for vll, _ in router.built} == set(
            alive.values_list("pk", flat=True)
        )
        assert owners() == set(alive.values_list("pk", flat=True))
        for model in (VniLease, GreKeyLease, GrePairLease):
            assert not model.objects.filter(released_at__isnull=False, free_at__isnull=True).exists()
        assert PortVlanLease.objects.count() == BandwidthBooking.objects.count() == 2 * alive.count()

    def at_rest(self, *lifecycles: str, number: int | None = None) -> Any:
        """Return the lines in these states without an open order, or one of them."""
        busy = Order.objects.exclude(state__in=TERMINAL_ORDER_STATES).values("vll")
        lines = Vll.objects.filter(lifecycle__in=lifecycles).exclude(pk__in=busy)
        # First the lines that have, or may have, remains on a router.
        odd = Q(tombstones__isnull=False) | Q(ends__port__router__in=self.silent())
        found = list(lines.annotate(odd=Count("pk", filter=odd)).order_by("-odd", "created_at"))
        return found if number is None else found[number % len(found)]

    def silent(self) -> set[int]:
        return {router.router.pk for router in self.routers if not router.reachable}

    def open_orders(self, **filters: Any) -> list[Order]:
        return list(
            Order.objects.filter(**filters).exclude(state__in=TERMINAL_ORDER_STATES).order_by("ordered_at")
        )

    def open_order(self, number: int, **filters: Any) -> Order:
        found = self.open_orders(**filters)
        return found[number % len(found)]


def not_leased(router: Router, row: IntendedEnd, cir_bps: int) -> Iterator[str]:
    """Yield the parts of an end on a router that are not leased or booked for its line."""
    keep = {
        row.vll,
        *Order.objects.filter(vll=row.vll).values_list("pk", flat=True),
        *VllTombstone.objects.filter(vll=row.vll).values_list("leases", flat=True),
    }
    access, transport = row.members["access"], row.members["transport"]
    tagging, outer = Tagging(access["tagging"]), access["outer_vlan"]
    port = Port.objects.get(router=router, interface=access["interface"])
    tagged = tag_keys(Tags(tagging, outer, access["inner_vlan"], access["exact_match"]))
    vlans = PortVlanLease.objects.filter(port=port, owner__in=keep, side=row.side)
    if not any(lease.keys.lower <= tagged[0] and tagged[1] <= lease.keys.upper for lease in vlans):
        yield f"{tagging} {outer} of {port} is not leased"
    booked = BandwidthBooking.objects.filter(port=port, owner__in=keep, side=row.side)
    if sum(booking.cir_bps for booking in booked) < cir_bps:
        yield f"{cir_bps} bit/s of {port} are not booked"
    encapsulation = Encapsulation(transport["encapsulation"])
    load = end_load(cir_bps, Transport.of(encapsulation, transport["family"]))
    cores = CoreBooking.objects.filter(router=router, owner__in=keep, side=row.side)
    if sum(booking.load for booking in cores) < load:
        yield f"a load of {load} on {router} is not booked"
    vni, gre_key = transport["vni"], transport.get("gre_key")
    vnis = VniLease.objects.filter(vni=vni, owner__in=keep, free_at=None)
    if vni is not None and not vnis.exists():
        yield f"VNI {vni} is not leased"
    keys = GreKeyLease.objects.filter(gre_key=gre_key, owner__in=keep, free_at=None)
    if gre_key is not None and not keys.exists():
        yield f"GRE key {gre_key} is not leased"
    if encapsulation == Encapsulation.GRE and gre_key is None:
        pair = (transport["local"], transport["remote"])
        pairs = GrePairLease.objects.filter(low__in=pair, high__in=pair, owner__in=keep, free_at=None)
        if not pairs.exists():
            yield f"the pair of {pair[0]} and {pair[1]} is not leased"


def test_no_resource_is_free_while_a_router_may_use_it() -> None:
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=12,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
