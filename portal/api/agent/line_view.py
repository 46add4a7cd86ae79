"""POST /api/agent/v1/line (docs/reference/agent-reports.md)."""

from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import QuerySet
from msgspec import Meta, Struct

from portal.api.agent.client_certificate import report_endpoint
from portal.core import clock
from portal.diagnosis.diagnosis import diagnosis_of
from portal.inventory.models import Router
from portal.vll.errors import LineAmbiguous, LineNotHere
from portal.vll.models import Vll
from portal.vll.states import TERMINAL_LIFECYCLES

# The refusal of an ambiguous name lists at most this number of ids.
_MAX_IDS = 10


class _Document(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    schema: Literal[1]
    line: Annotated[str, Meta(min_length=1, max_length=100)]


@report_endpoint(_Document)
def line(router: Router, request: _Document) -> dict[str, Any]:
    """Return the portal's facts about a line that ends on the router, and the line's diagnosis.

    The request names the line by id or name. Raises LineNotHere, LineAmbiguous.
    """
    found = list(_lines(router, request.line)[: _MAX_IDS + 1])
    if not found:
        raise LineNotHere(line=request.line, router=router.name)
    if len(found) > 1:
        raise LineAmbiguous(line=request.line, ids=", ".join(str(each.pk) for each in found[:_MAX_IDS]))
    vll = found[0]
    diagnosis = diagnosis_of(vll, now=clock.now()).as_document(for_noc=True)
    return {
        "vll": str(vll.pk),
        "description": vll.description,
        "customer": vll.customer.name,
        "lifecycle": vll.lifecycle,
        "cir_bps": vll.cir_bps,
        "verdict": diagnosis["verdict"]["sentence"],
        "checks": [
            {"code": each["code"], "state": each["state"], "evidence": each["evidence"]}
            for each in diagnosis["checks"]
        ],
    }


def _lines(router: Router, text: str) -> QuerySet[Vll]:
    here = Vll.objects.filter(ends__port__router=router).exclude(lifecycle__in=TERMINAL_LIFECYCLES).distinct()
    rows = here.select_related("customer").order_by("created_at", "pk")
    try:
        return rows.filter(pk=UUID(text))
    except ValueError:
        return rows.filter(description__iexact=text.replace("\0", ""))
