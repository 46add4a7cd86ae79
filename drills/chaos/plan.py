"""The orders and faults of a storm with their times. The seed alone determines them.

In the plan, lines are numbers, because a VLL has an id only after its order. An order can become invalid
because the order of its line was refused or is still open. The storm also tests that the portal refuses an
invalid order.
"""

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

ROUTERS = ("rhino", "hippo")
# The ports for each kind of tagging. VPP's host-interface does not support 802.1ad; memif does.
TAGGED = ("host-cust1", "host-cust2")
DOT1AD = ("memif1/0", "memif2/0")
WHOLE = ("memif3/0", "memif4/0", "memif5/0")
MEMIFS = (*DOT1AD, *WHOLE)
TUNNELS = ("vxlan4", "vxlan6", "geneve4", "geneve6", "gre4", "gre6", "auto")
TAGGINGS = ("dot1q", "dot1q", "qinq", "dot1ad", "untagged")
MTUS = (1400, 1500, 2000)
RATES_BPS = tuple(rate * 1_000_000 for rate in (1, 5, 10, 50))
# The number of lines that the operator configures by hand before the storm. The portal adopts them during it.
HANDMADE = 6
MEAN_BETWEEN_ORDERS_S = 0.5
# For this number of seconds after the order of a line, the plan can only cancel the line. Other orders need a
# built line.
LEFT_ALONE_S = 6.0
MEAN_BETWEEN_FAULTS_S = 4.0
FAULTS_AT_ONCE = 3

PROCESSES = (
    *("worker", "doubtful", "sweeper", "messenger", "beat", "web", "agent-api", "redis", "postgres"),
    *(f"{kind}-{router}" for kind in ("agent", "dataplane") for router in ROUTERS),
)
CABLES = tuple(f"cable-{router}" for router in ROUTERS)
DISKS = ("disk-postgres", *(f"disk-agent-{router}" for router in ROUTERS))
FAULTS = {"kill": PROCESSES, "freeze": PROCESSES, "cut": CABLES, "fill": DISKS}
_FAULT_WEIGHTS = {"kill": 10, "freeze": 6, "cut": 3, "fill": 2}
_LONGEST_S = {"kill": 8.0, "freeze": 15.0, "cut": 20.0, "fill": 8.0}


@dataclass(frozen=True, slots=True)
class Step:
    """A request to the portal about a line of the plan or about a router."""

    at_s: float
    do: str
    line: int | None = None
    router: str | None = None
    requested: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        what = f"line {self.line}" if self.router is None else self.router
        return f"{self.do} {what} {self.requested or ''}".strip()


@dataclass(frozen=True, slots=True)
class Fault:
    at_s: float
    lasts_s: float
    kind: str
    target: str

    def __str__(self) -> str:
        return f"{self.kind} {self.target} for {self.lasts_s:.1f} s"


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    seconds: float
    steps: tuple[Step, ...]
    faults: tuple[Fault, ...]

    @property
    def fingerprint(self) -> str:
        """A hash of the plan. Equal plans have equal hashes."""
        return hashlib.sha256(repr((self.steps, self.faults)).encode()).hexdigest()[:12]


def make_plan(seed: int, seconds: float) -> Plan:
    # Orders and faults have separate random generators. So a change of the code for faults does not change
    # the orders of a seed.
    orders, breaks = random.Random(f"orders {seed}"), random.Random(f"faults {seed}")
    steps = sorted(_Orders(orders, seconds).steps(), key=lambda step: step.at_s)
    return Plan(seed, seconds, tuple(steps), tuple(_faults(breaks, seconds)))


def _faults(chance: random.Random, seconds: float) -> Iterator[Fault]:
    under_way: list[tuple[float, str]] = []
    at = 2.0
    while (at := at + chance.expovariate(1 / MEAN_BETWEEN_FAULTS_S)) < seconds:
        under_way = [(end, target) for end, target in under_way if end > at]
        kind = chance.choices(list(_FAULT_WEIGHTS), list(_FAULT_WEIGHTS.values()))[0]
        target = chance.choice(FAULTS[kind])
        lasts = round(chance.uniform(0.5, _LONGEST_S[kind]), 2)
        if len(under_way) < FAULTS_AT_ONCE and target not in {busy for _, busy in under_way}:
            # Keep the target busy for 3 s after the fault: a killed process needs this time to start before
            # it is killed again.
            under_way.append((at + lasts + 3, target))
            yield Fault(round(at, 2), lasts, kind, target)


class _Orders:
    """Generate orders. For each line, keep the state that it would have if all orders were executed."""

    def __init__(self, chance: random.Random, seconds: float) -> None:
        self._chance, self._seconds = chance, seconds
        self._states: dict[int, str] = {}
        self._born: dict[int, float] = {}
        self._taggings: dict[int, str] = {}
        self._handmade = list(range(HANDMADE))
        self._busy_routers: dict[str, float] = {}
        self._kinds: dict[str, tuple[int, Callable[[float], Iterator[Step]]]] = {
            "create": (34, self._create),
            "change": (16, self._change),
            "suspend": (8, self._simple("suspend", {"active"}, "suspended")),
            "resume": (8, self._simple("resume", {"suspended"}, "active")),
            "remove": (9, self._simple("remove", {"active", "suspended", "cooling"}, "gone")),
            "remove-later": (6, self._simple("remove-later", {"active", "suspended"}, "cooling")),
            "take-back": (6, self._simple("take-back", {"cooling"}, "active")),
            "cancel": (2, self._cancel),
            "test": (6, self._simple("test", {"active"}, None)),
            "let-go": (4, self._simple("let-go", {"active"}, "foreign")),
            "adopt-again": (4, self._simple("adopt-again", {"foreign"}, "active")),
            "adopt": (3, self._adopt),
            "maintenance": (2, self._router_work("maintenance-begin", ("maintenance-end",))),
            "freeze": (1, self._router_work("freeze", ("unfreeze", "freeze-looked"))),
            "hold": (1, self._router_work("hold", ("release",))),
        }

    def steps(self) -> Iterator[Step]:
        at = 0.0
        weights = [weight for weight, _ in self._kinds.values()]
        while (at := at + self._chance.expovariate(1 / MEAN_BETWEEN_ORDERS_S)) < self._seconds:
            name = self._chance.choices(list(self._kinds), weights)[0]
            yield from self._kinds[name][1](round(at, 2))

    def _create(self, at: float) -> Iterator[Step]:
        line, tagging = len(self._states), self._chance.choice(TAGGINGS)
        local = tagging != "untagged" and self._chance.random() < 0.15
        ports = {"dot1ad": DOT1AD, "untagged": WHOLE}.get(tagging, TAGGED)
        port = self._chance.choice(ports)
        routers = (ROUTERS[0],) * 2 if local else self._chance.choice((ROUTERS, ROUTERS[::-1]))
        requested = {
            "a": self._end(line, tagging, routers[0], port),
            "z": self._end(line, tagging, routers[1], ports[1 - ports.index(port)] if local else port),
            "transport": "l2xc" if local else self._chance.choice(TUNNELS),
            "svc_mtu": self._chance.choice(MTUS),
            "cir_bps": self._chance.choice(RATES_BPS),
        }
        self._states[line], self._taggings[line], self._born[line] = "active", tagging, at
        yield Step(at, "create", line, requested=requested)

    def _end(self, line: int, tagging: str, router: str, port: str) -> dict[str, Any]:
        """Return an end for an order.

        One line in twenty requests the VLAN of the line before it. The portal may refuse such an order.
        """
        outer = 100 + (line - 1 if line and self._chance.random() < 0.05 else line)
        return {
            "router": router,
            "port": port,
            "tagging": tagging,
            "outer_vlan": None if tagging == "untagged" else outer,
            "inner_vlan": 7 if tagging in ("qinq", "dot1ad") else None,
        }

    def _change(self, at: float) -> Iterator[Step]:
        line = self._some({"active", "suspended"}, at)
        if line is None:
            return
        requested: dict[str, Any] = self._chance.choice(
            (
                {"cir_bps": self._chance.choice(RATES_BPS)},
                {"svc_mtu": self._chance.choice(MTUS)},
                {"transport": self._chance.choice(TUNNELS)},
                {"z_end": {"outer_vlan": 2000 + line}},
                {"cir_bps": self._chance.choice(RATES_BPS), "a_end": {"outer_vlan": 3000 + line}},
                {"description": f"line {line}, renamed"},
            )
        )
        if self._taggings[line] == "untagged" and not requested.keys().isdisjoint({"a_end", "z_end"}):
            requested = {"cir_bps": self._chance.choice(RATES_BPS)}
        yield Step(at, "change", line, requested=requested)

    def _adopt(self, at: float) -> Iterator[Step]:
        if self._handmade:
            number = self._handmade.pop(self._chance.randrange(len(self._handmade)))
            # After its adoption, this line is treated like any other line.
            line = len(self._states)
            self._states[line], self._taggings[line], self._born[line] = "active", "dot1q", at
            yield Step(at, "adopt", line, requested={"handmade": number})

    def _cancel(self, at: float) -> Iterator[Step]:
        """Cancel the newest order of the newest line. The order may still be in progress."""
        if self._states:
            yield Step(at, "cancel", max(self._states))

    def _simple(self, do: str, those: set[str], then: str | None) -> Callable[[float], Iterator[Step]]:
        def draw(at: float) -> Iterator[Step]:
            line = self._some(those, at)
            if line is not None:
                self._states[line] = then or self._states[line]
                yield Step(at, do, line)

        return draw

    def _router_work(self, do: str, ends: tuple[str, ...]) -> Callable[[float], Iterator[Step]]:
        def draw(at: float) -> Iterator[Step]:
            router = self._chance.choice(ROUTERS)
            if self._busy_routers.get(router, 0) > at:
                return
            lasts = round(self._chance.uniform(2, 8), 2)
            self._busy_routers[router] = at + lasts + 5
            yield Step(at, do, router=router)
            for n, end in enumerate(ends):
                yield Step(round(at + lasts + 2 * n, 2), end, router=router)

        return draw

    def _some(self, states: set[str], at: float) -> int | None:
        old = (line for line, born in self._born.items() if born <= at - LEFT_ALONE_S)
        found = [line for line in old if self._states[line] in states]
        return self._chance.choice(found) if found else None
