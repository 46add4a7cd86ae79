"""Answers that tests send in the name of the routers at both ends of a VLL."""

from typing import Any

from portal.core import clock
from portal.inventory.models import Router
from portal.vll.models import Vll, VllEnd, VllTombstone
from portal.vll.operations.order_progress import answers_take
from portal.vll.operations.tombstones import EndAnswer

CONFLICT = {"code": "foreign_subinterface", "message": "VLAN 100 is taken", "object": "host-cust1.7"}


def answer(vll: Vll, side: str, status: str, *, permanent: bool = False, **more: Any) -> None:
    """Let the router of ``side`` answer about the current revision, or about ``revision``."""
    vll.refresh_from_db()
    end = VllEnd.objects.select_related("port__router").get(vll=vll, side=side)
    said = EndAnswer(
        vll=vll.pk,
        side=side,
        revision=more.get("revision", vll.revision),
        status=status,
        reason=more.get("reason"),
        permanent=permanent,
        policed=more.get("policed", False),
        look=more.get("look"),
    )
    answers_take(router=more.get("router", end.port.router), answers=[said], now=clock.now())
    vll.refresh_from_db()


def activate(vll: Vll) -> None:
    """Let both routers verify the VLL."""
    answer(vll, "a", "verified")
    answer(vll, "z", "verified")


def refuse(vll: Vll, side: str) -> None:
    """Let the router report a foreign object that conflicts with the end at ``side``."""
    answer(vll, side, "conflict", permanent=True, reason=CONFLICT)


def left(vll: Vll, side: str, router: Router, status: str = "removed") -> None:
    """Let the router that an end has left answer about its tombstone."""
    revision = VllTombstone.objects.get(vll=vll, side=side, router=router).revision
    said = EndAnswer(vll=vll.pk, side=side, revision=revision, status=status, reason=None, permanent=False)
    answers_take(router=router, answers=[said], now=clock.now())
    vll.refresh_from_db()
