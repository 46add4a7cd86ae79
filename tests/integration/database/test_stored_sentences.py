"""The portal stores sentences in English and shows them in the reader's language where the facts allow."""

import json

import pytest
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import translation

from portal.accounts.models import User
from portal.alarms.rounds import alarms_watch
from portal.core import clock
from portal.diagnosis.checks import Check, CheckState, Finding
from portal.diagnosis.diagnosis import stored_sentence, verdict_of
from portal.diagnosis.line_facts import facts_of
from portal.events.models import Event
from portal.vll.models import ActivationTest, Order, Vll
from portal.vll.operations.activation_test_lifecycle import activation_test_announce
from portal.vll.sentences import failure_sentence
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
ENGLISH = "Test frames are lost along the way, even small ones."
GERMAN = "Test-Frames gehen unterwegs verloren, auch kleine."
VERDICT = (
    "The portal gets no reports from its routers, so it does not know the state of the line. The"
    " line may still be up."
)
VERDICT_IN_GERMAN = (
    "Das Portal erhält zurzeit keine Meldungen von seinen Routern und kennt"
    " deshalb den Zustand der Leitung nicht. Die Leitung ist womöglich trotzdem in Betrieb."
)
FAILURE = {
    "code": "line-test-frames-lost",
    "message": ENGLISH,
    "frame": 1518,
    "largest_passed": None,
    "links": [],
    "routers": [],
    "refusal": "",
}


def test_finding_of_a_german_report_is_stored_in_english(alice: User, vll: Vll) -> None:
    User.objects.filter(pk=alice.pk).update(language="de")
    signed_in(alice).post(f"/vlls/{vll.pk}/diagnosis/report/", {"note": "Es ruckelt"})
    report = vll.trouble_reports.get()
    evidence = [check["evidence"] for check in report.finding["checks"]]
    assert evidence[0] == "The line is in service, and nobody is changing it."


def test_trouble_is_shown_in_the_readers_language(alice: User, nina: User, vll: Vll) -> None:
    signed_in(alice).post(f"/vlls/{vll.pk}/diagnosis/report/", {"note": "It stutters"})
    alarms_watch(now=clock.now())
    client = signed_in(nina)
    for page in ("/noc/trouble/", "/noc/"):
        assert VERDICT in text(client.get(page))
        assert VERDICT_IN_GERMAN in text(client.get(page, headers={"Accept-Language": "de"}))


def test_stored_verdict_is_shown_with_its_end_and_time(vll: Vll) -> None:
    line = facts_of(vll, now=clock.now())
    port = line.ends["a"].port
    verdict = verdict_of(
        line,
        [Check("a_port_link", CheckState.BROKEN, "", clock.now(), finding=Finding.PORT_DOWN, side="a")],
    )
    kept = json.loads(json.dumps(verdict.facts, cls=DjangoJSONEncoder))
    stored = {"code": verdict.code, "sentence": verdict.sentence}
    assert stored_sentence(stored, kept) == verdict.sentence == f"The port {port} at the A end has no link."
    with translation.override("de"):
        assert stored_sentence(stored, kept) == f"Der Port {port} am A-Ende hat keinen Link."
        # Older releases stored no facts.
        assert stored_sentence(stored, None) == verdict.sentence


def test_alarm_of_a_failed_test_is_shown_in_the_readers_language(nina: User, vll: Vll) -> None:
    routers = {side: {"router": name} for side, name in (("a", "rhino"), ("z", "hippo"))}
    ActivationTest.objects.create(
        vll=vll,
        order=vll.orders.get(),
        revision=1,
        frame=1518,
        state="failed",
        reason="frames-lost",
        conditions={"routers": routers},
        created_at=clock.now(),
        finished_at=clock.now(),
    )
    alarms_watch(now=clock.now())
    client = signed_in(nina)
    assert ENGLISH in text(client.get("/noc/"))
    assert GERMAN in text(client.get("/noc/", headers={"Accept-Language": "de"}))


def test_webhooks_get_the_result_of_a_test_in_english(alice: User, vll: Vll) -> None:
    test = ActivationTest(
        vll=vll, revision=1, frame=1518, state="failed", reason="frames-lost", conditions={}
    )
    with translation.override("de"):
        activation_test_announce(test, now=clock.now())
    assert Event.objects.get(kind="line_test.failed").data["reason"] == ENGLISH


def test_reason_of_a_failed_order_is_shown_in_the_readers_language(alice: User, isp: Isp) -> None:
    placed = order(isp, alice)
    Order.objects.filter(pk=placed.pk).update(failure=FAILURE)
    client = signed_in(alice)
    assert ENGLISH in text(client.get("/orders/"))
    assert GERMAN in text(client.get("/orders/", headers={"Accept-Language": "de"}))
    assert ENGLISH in text(client.get("/orders/"))


@pytest.mark.parametrize(
    "failure",
    [
        {"code": "vpp_refused", "message": "VPP refused"},
        # Stored before the facts were.
        {"code": "line-test-frames-lost", "message": "VPP refused"},
        {"code": "rejected", "message": "VPP refused"},
    ],
)
def test_foreign_messages_are_not_translated(failure: dict[str, str]) -> None:
    assert failure_sentence(failure) == "VPP refused"
    assert failure_sentence(None) == ""
