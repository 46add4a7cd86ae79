"""Run the examples of the documentation's pages; each gets the documented response.

Replace only what a reader replaces: the ids, ports and ETag of the example, with those of existing objects.
"""

import html
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import httpx
import pytest
from django.test import Client

from portal.accounts.invitations import invite
from portal.accounts.models import ApiToken, Customer, Scope, User
from portal.accounts.tokens import token_create
from portal.allocation.models import ReservedVniRange
from portal.api.openapi.document import GROUPS, document
from portal.api.openapi.reference import METHODS
from portal.core import clock
from portal.diagnosis.trouble_reports import trouble_report
from portal.inventory.models import ObservedRouter
from portal.notifications.webhook_operations import webhook_create, webhook_test
from portal.vll.models import ActivationTest, PlanResult
from portal.vll.operations.reservations import reservation_make
from tests.integration.imports.files import checked
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate

OPERATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    item[method]["operationId"]: (method, path, item[method])
    for path, item in document()["paths"].items()
    for method in METHODS
    if method in item
}
READS = [name for name, (method, _, _) in OPERATIONS.items() if method == "get"]
# The order matters: each example leaves what the next ones need. Missing operations need a router that
# answers, or an order or a delivery in a certain state.
WRITES = [
    "sites_create",
    "routers_create",
    "sites_partial_update",
    "routers_partial_update",
    "ports_create",
    "ports_partial_update",
    "links_create",
    "links_partial_update",
    "vni_ranges_create",
    "vni_ranges_partial_update",
    "customers_create",
    "customers_partial_update",
    "routers_actions_create",
    "trouble_reports_close_create",
    "invitations_create",
    "invitations_destroy",
    "members_partial_update",
    "mail_preferences_partial_update",
    "webhooks_create",
    "webhooks_partial_update",
    "webhooks_secret_create",
    "webhooks_test_create",
    "tokens_create",
    "vlls_validate_create",
    "holds_create",
    "holds_renew_create",
    "holds_destroy",
    "vlls_trouble_reports_create",
    "vlls_create",
    "vlls_partial_update",
]
_BODY_PORTS = (12, 34)


@pytest.fixture
def ids(
    transactional_db: None, isp: Isp, alice: User, ada: User, nina: User, dairy: Customer
) -> dict[str, Any]:
    """Return the ids for the paths, by the first part of the path; ``test`` is one of the line's tests."""
    now = clock.now()
    line = order(isp, alice)
    activate(line.vll)
    tested = ActivationTest.objects.create(
        vll=line.vll,
        order=line,
        revision=1,
        admin_status_after="admin-up",
        frame=line.vll.frame,
        created_at=now,
    )
    PlanResult.objects.create(order=line, requested_by="nina", requested_at=now, finished_at=now, routers=[])
    ends = [end(isp, f"{name}:host-cust2", outer=7) for name in ("rhino", "hippo")]
    webhook, _ = webhook_create(user=ada, customer=dairy, url="https://hooks.customer.example/old", now=now)
    return {
        "vlls": line.vll_id,
        "test": tested.pk,
        "orders": line.pk,
        "jobs": line.pk,
        "holds": reservation_make(user=alice, a_end=ends[0], z_end=ends[1], cir_bps=1000, now=now).pk,
        "trouble-reports": trouble_report(user=alice, vll=line.vll, note="No frames", now=now).pk,
        "ports": isp.ports["rhino:host-cust2"].pk,
        "sites": isp.routers["rhino"].site_id,
        "routers": isp.routers["otter"].pk,
        "links": isp.links["rhino-hippo"].pk,
        "customers": dairy.pk,
        "people": ada.pk,
        "members": alice.memberships.get().pk,
        "invitations": invite(
            by=ada, customer=dairy, email="old@customer.example", role="viewer", now=now
        ).pk,
        "webhooks": webhook.pk,
        "webhook-deliveries": webhook_test(webhook=webhook, now=now).pk,
        "imports": checked(nina, "sites", "name\nBern\n").pk,
        "vni-ranges": ReservedVniRange.objects.create(first=1, last=9, reason="old").pk,
        "body_ports": [isp.ports[f"{name}:host-cust2"].pk for name in ("rhino", "hippo")],
    }


@pytest.fixture
def tokens(live_server: Any, ids: dict[str, Any], ada: User, nina: User) -> dict[str, str]:
    """Return tokens of a customer's admin and of a NOC admin, with all their scopes."""
    now, made = clock.now(), {}
    for user, scopes in ((ada, {Scope.ORDER, Scope.TEAM, Scope.WEBHOOKS}), (nina, {Scope.NOC})):
        scopes_of_token = [str(scope) for scope in (Scope.READ, *sorted(scopes))]
        _, made[user.username] = token_create(user=user, name="examples", scopes=scopes_of_token, now=now)
    ids["tokens"] = ApiToken.objects.get(user=ada).pk
    return made


def shown_examples(language: str) -> dict[str, str]:
    """Return the examples of the pages by operation."""
    found = {}
    for slug in GROUPS:
        page = Client().get(f"/api/docs/{slug}/").content.decode()
        for fragment, section in re.findall(
            r'<section[^>]*id="(\w+)" aria.*?>(.*?)</section>', page, re.DOTALL
        ):
            if fragment in OPERATIONS:
                example = re.search(rf'<pre[^>]*data-language="{language}">(.*?)</pre>', section, re.DOTALL)
                assert example is not None, fragment
                found[fragment] = html.unescape(example[1])
    assert set(found) == set(OPERATIONS)
    return found


def filled_in(text: str, name: str, ids: dict[str, Any], url: str, token: str) -> str:
    """Replace the parts that a reader replaces."""
    _, path, operation = OPERATIONS[name]
    examples = {
        each["name"]: str(each["example"]) for each in operation["parameters"] if each["in"] == "path"
    }
    shown, real = path, path
    for parameter, example in examples.items():
        shown = shown.replace(f"{{{parameter}}}", example)
        mine = ids["test"] if parameter == "test" else ids[path.split("/")[3]]
        real = real.replace(f"{{{parameter}}}", str(mine))
    assert f"{url}{shown}" in text
    text = text.replace(f"{url}{shown}", f"{url}{real}")
    for shown_port, port in zip(_BODY_PORTS, ids["body_ports"], strict=True):
        text = re.sub(rf'("port": ){shown_port}\b', rf"\g<1>{port}", text)
    for each in operation["parameters"]:
        if each["name"] == "If-Match":
            answer = httpx.get(f"{url}{real}", headers={"Authorization": f"Bearer {token}"})
            text = text.replace(each["example"], answer.headers["ETag"])
    return text


def by_curl(text: str, token: str) -> tuple[int, str]:
    """Run the example with curl and return the status and the body."""
    # Quiet, with the status after the body; with a fixed key where uuidgen is not installed.
    silent = "curl() { command curl --silent --write-out '\\n%{http_code}' \"$@\"; }\n"
    drawn = "uuidgen() { cat /proc/sys/kernel/random/uuid; }\n"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", silent + drawn + text],
        env={"PATH": os.environ["PATH"], "TOKEN": token, "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def by_python(text: str, token: str) -> tuple[int, str]:
    """Run the Python example and return the status and the body."""
    before = os.environ.get("TOKEN")
    os.environ["TOKEN"] = token
    names: dict[str, Any] = {}
    try:
        with redirect_stdout(io.StringIO()):
            exec(compile(text, "example", "exec"), names)  # noqa: S102 - it is the example that is tested
    except httpx.HTTPStatusError as refused:
        return refused.response.status_code, refused.response.text
    finally:
        if before is None:
            del os.environ["TOKEN"]
        else:
            os.environ["TOKEN"] = before
    return names["response"].status_code, names["response"].text


@pytest.mark.parametrize(
    ("language", "run"), [("curl", by_curl), ("python", by_python)], ids=["curl", "python"]
)
def test_examples_return_the_documented_response(
    live_server: Any,
    settings: Any,
    ids: dict[str, Any],
    tokens: dict[str, str],
    language: str,
    run: Callable[[str, str], tuple[int, str]],
) -> None:
    if language == "curl" and shutil.which("curl") is None:
        pytest.skip("curl is not installed, so its examples were not run")
    settings.BASE_URL = live_server.url
    examples, failed = shown_examples(language), {}
    for name in [*READS, *WRITES]:
        # Agents report all the while.
        ObservedRouter.objects.update(reported_at=clock.now())
        choices = [scopes for choice in OPERATIONS[name][2]["security"] for scopes in choice.values()]
        token = tokens["nina" if ["noc"] in choices and ["order"] not in choices else "ada"]
        text = filled_in(examples[name], name, ids, live_server.url, token)
        status, body = run(text, token)
        promised = {int(each) for each in OPERATIONS[name][2]["responses"] if each < "300"}
        if status not in promised:
            failed[name] = (status, body[:300])
        elif name == "holds_create":
            ids["holds"] = json.loads(body)["id"]
    assert failed == {}
