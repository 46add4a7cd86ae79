"""The diagnosis of a line for one reader: a chain of checks and one verdict."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.diagnosis.checks import Check, checks_of
from portal.diagnosis.line_facts import facts_of
from portal.diagnosis.verdict import Verdict, verdict_of
from portal.vll.models import Vll


@dataclass(frozen=True, slots=True)
class Diagnosis:
    verdict: Verdict
    checks: list[Check]

    def as_document(self, *, for_noc: bool) -> dict[str, Any]:
        """Return the response of ``GET /api/v1/vlls/<id>/diagnosis``.

        ``for_noc``: the response contains details of routers, which only the NOC may see.
        """
        return {
            "verdict": {
                "code": self.verdict.code,
                "sentence": self.verdict.sentence,
                "advice": self.verdict.advice,
            },
            "checks": [
                {
                    "code": check.code,
                    "state": check.state.value,
                    "evidence": check.evidence,
                    "at": check.at,
                    "detail": check.detail if for_noc else "",
                }
                for check in self.checks
            ],
        }


def diagnosis_of(vll: Vll, *, now: datetime) -> Diagnosis:
    """Return the diagnosis of a line from the last reports of the agents. The portal does not
    query the routers.
    """
    line = facts_of(vll, now=now)
    checks = checks_of(line)
    return Diagnosis(verdict_of(line, checks), checks)
