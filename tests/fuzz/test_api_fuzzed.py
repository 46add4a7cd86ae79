"""Thousands of valid and invalid requests, generated from the schema, test the promises of the schema.

FUZZ_EXAMPLES sets the number of random requests for each operation. Requests at the limits of the schema come
in addition. With fewer than 50, the customer and the NOC take turns with the latter, which are most requests,
and the customer sends every third hostile text.

All checks of Schemathesis are on. Two of them have additional expected statuses. A valid request may be
refused because of the network (422) or of another version (412), and a change without If-Match gets 428.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.generation.meta import TestPhase

from portal.accounts.invitations import invite
from portal.accounts.models import Customer, User
from portal.accounts.tokens import token_create
from portal.allocation.models import ReservedVniRange
from portal.api.openapi.document import document
from portal.core import clock
from portal.diagnosis.trouble_reports import trouble_report
from portal.notifications.webhook_operations import webhook_create, webhook_test
from portal.vll.operations.reservations import reservation_make
from portal.wsgi import application
from tests.integration.api.test_api_v1 import client
from tests.integration.circuits import found_line
from tests.integration.conftest import one_connection
from tests.integration.imports.files import checked
from tests.integration.isp import build_isp, member
from tests.integration.orders import end, order
from tests.integration.router_answers import activate

__all__ = ["one_connection"]
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "5"))
_turns = cycle((0, 1))
REFUSALS = ["2xx", "304", "401", "403", "404", "409", "412", "422"]
CONFIG = schemathesis.Config.from_dict(
    {
        "checks": {
            "positive_data_acceptance": {"expected-statuses": REFUSALS},
            "negative_data_rejection": {"expected-statuses": ["4xx"]},
            "missing_required_header": {"expected-statuses": ["4xx"]},
        },
    }
)
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_connection", "no_limits")]
schema = schemathesis.openapi.from_dict(document(), config=CONFIG)
schema.app = application


@dataclass
class Known:
    """The ids and the callers of requests.

    ``ids`` has an existing object by the first part of a path. ``identities`` has the headers of a customer
    and of the NOC.
    """

    alice: User
    nina: User
    ids: dict[str, str]
    identities: list[dict[str, str]]


@pytest.fixture
def no_limits(settings: Any) -> None:
    settings.LONGLINE_API_READS_PER_MIN = settings.LONGLINE_API_WRITES_PER_MIN = 0
    settings.LONGLINE_ENROL_PER_MIN = 0
    settings.ALLOWED_HOSTS = ["*"]


@pytest.fixture(scope="module")
def known(module_rows: None) -> Known:
    dairy = Customer.objects.create(name="Alpine Dairy", created_at=clock.now())
    alice, isp = member("alice", dairy, "operator"), build_isp(owner=dairy)
    nora, nina = (
        User.objects.create_user(name, noc_role=role)
        for name, role in (("nora", "noc"), ("nina", "nocAdmin"))
    )
    placed = order(isp, alice)
    ends = [end(isp, f"{name}:host-cust2", outer=7) for name in ("rhino", "hippo")]
    activate(placed.vll)
    email, now = "dora@dairy.example", clock.now()
    invitation = invite(by=nina, customer=placed.customer, email=email, role="viewer", now=now)
    url = "https://hooks.example.net/"
    webhook, _ = webhook_create(user=alice, customer=dairy, url=url, now=clock.now())
    ids = {
        "webhooks": str(webhook.pk),
        "webhook-deliveries": str(webhook_test(webhook=webhook, now=clock.now()).pk),
        "vlls": str(placed.vll_id),
        "orders": str(placed.pk),
        "jobs": str(placed.pk),
        "holds": str(
            reservation_make(user=alice, a_end=ends[0], z_end=ends[1], cir_bps=1000, now=clock.now()).pk
        ),
        "ports": str(isp.ports["rhino:host-cust1"].pk),
        "customers": str(dairy.pk),
        "routers": str(isp.routers["rhino"].pk),
        "sites": str(isp.routers["rhino"].site_id),
        "links": str(isp.links["rhino-hippo"].pk),
        "vni-ranges": str(ReservedVniRange.objects.create(first=1, last=9, reason="lab").pk),
        "trouble-reports": str(trouble_report(user=alice, vll=placed.vll, note="", now=clock.now()).pk),
        "found-lines": str(found_line(isp)),
        "imports": str(checked(nora, "sites", "name\nBern\n").pk),
        "people": str(alice.pk),
        "members": str(alice.memberships.get().pk),
        "invitations": str(invitation.pk),
        "tokens": str(token_create(user=alice, name="known", now=clock.now())[0].pk),
    }
    tokens = [token_create(user=user, name="fuzz", now=clock.now())[1] for user in (alice, nora)]
    return Known(alice, nina, ids, [{"Authorization": f"Bearer {plain}"} for plain in tokens])


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_api_does_what_its_schema_says(case: schemathesis.Case, known: Known) -> None:
    """The customer and the NOC send the same request, because generating it takes most of the time.

    Only the NOC sends requests that violate the schema. A customer's may be refused for other reasons first.
    """
    if not case.meta.generation.mode.is_positive:
        askers = known.identities[1:]
    elif case.meta.phase.name is TestPhase.COVERAGE and EXAMPLES < 50:
        askers = [known.identities[next(_turns)]]
    else:
        askers = known.identities
    if case.path_parameters and case.meta.generation.mode.is_positive:
        area = case.path.removeprefix("/api/v1/").partition("/")[0]
        case.path_parameters["id"] = known.ids[area]
    for headers in askers:
        case.call_and_validate(headers=headers)


WRITES = [
    pytest.param(method, path, item[method], id=f"{method.upper()} {path}")
    for path, item in document()["paths"].items()
    for method in ("post", "patch")
    if "requestBody" in item.get(method, {})
]
HOSTILE = (
    "\0",
    "a\0b",
    "\x1b[2J\r\n\u202e<script>alert(1)</script>",
    "=1+1",
    "\U0001f600" * 100,
    "'; --",
    " ",
)


def with_text(body: Any, text: str) -> Iterator[Any]:
    """Yield copies of the body in which the text replaces one of its texts at a time."""
    members = body.items() if isinstance(body, dict) else enumerate(body)
    for name, value in members:
        for other in (
            [text]
            if isinstance(value, str)
            else with_text(value, text)
            if isinstance(value, dict | list)
            else ()
        ):
            changed = body.copy()
            changed[name] = other
            yield changed


@pytest.mark.parametrize(("method", "path", "operation"), WRITES)
def test_no_text_in_a_body_causes_a_server_error(
    method: str, path: str, operation: Any, known: Known
) -> None:
    """The NOC sends each text; the customer every third, or each where the NOC has no permission."""
    example = operation["requestBody"]["content"]["application/json"]["example"]
    url, texts = path.replace("{id}", known.ids.get(path.split("/")[3], "")), HOSTILE
    for user in (known.nina, known.alice):
        api, answers = client(user), set[int]()
        for text in texts:
            for body in with_text(example, text):
                answer = getattr(api, method)(url, body, format="json", headers={"If-Match": "*"})
                answers.add(answer.status_code)
                assert answer.status_code < 500, (body, answer.content)
                assert answer.status_code < 400 or answer["Content-Type"] == "application/problem+json"
        if EXAMPLES < 50 and not answers <= {403, 404}:
            texts = HOSTILE[::3]
