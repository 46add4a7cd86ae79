"""Reports to the NOC about trouble with a line. The NOC closes them."""

import json
from datetime import datetime

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core.reader_texts import in_english
from portal.diagnosis.diagnosis import diagnosis_of
from portal.diagnosis.errors import NotForYouToClose, TroubleIsClosed, TroubleIsReported
from portal.diagnosis.models import TroubleReport
from portal.events.announcements import announce
from portal.vll.models import Vll


@transaction.atomic
def trouble_report(*, user: User, vll: Vll, note: str, now: datetime) -> TroubleReport:
    """Report trouble with a line that the user may see, with the diagnosis. Raises TroubleIsReported."""
    vll = Vll.objects.locked().select_related("customer").get(pk=vll.pk)
    if there := vll.trouble_reports.filter(closed_at__isnull=True).first():
        raise TroubleIsReported(at=there.reported_at)
    with in_english():
        diagnosis = diagnosis_of(vll, now=now)
        finding = diagnosis.as_document(for_noc=True) | {"facts": diagnosis.verdict.facts}
    report = TroubleReport.objects.create(
        vll=vll,
        customer=vll.customer,
        reported_by=user.username,
        reported_at=now,
        note=note,
        finding=json.loads(json.dumps(finding, cls=DjangoJSONEncoder)),
    )
    verdict = finding["verdict"]
    details = {"note": note, "verdict": verdict["code"], "sentence": verdict["sentence"]}
    _announce("trouble.reported", report, actor=user.username, now=now, **details)
    return report


@transaction.atomic
def trouble_close(*, user: User, report: TroubleReport, now: datetime) -> TroubleReport:
    """Close a report after the NOC has finished its work. Raises NotForYouToClose, TroubleIsClosed."""
    if not permissions.may_run_the_network(user):
        raise NotForYouToClose
    report = TroubleReport.objects.select_for_update().get(pk=report.pk)
    if report.closed_at is not None:
        raise TroubleIsClosed(by=report.closed_by)
    report.closed_at, report.closed_by = now, user.username
    report.save()
    _announce("trouble.closed", report, actor=user.username, now=now)
    return report


def _announce(kind: str, report: TroubleReport, *, actor: str, now: datetime, **details: str) -> None:
    announce(
        kind,
        now=now,
        customer_id=report.customer_id,
        vll_id=report.vll_id,
        actor=actor,
        data={"trouble_report": str(report.pk), **details},
    )
