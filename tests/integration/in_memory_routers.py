"""Routers for tests, in memory: they exchange intents and answers as documents, without sockets."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from portal.inventory.models import Router
from portal.vll.models import Vll
from portal.vll.operations.order_progress import answers_take
from provisioning.agent_reply_decoder import Answered, reply_decode
from provisioning.intent_document import IntendedEnd, RouterIntent
from provisioning.intent_generations import next_intent
from tests.integration.stand_in_agent import StandInAgent, end_status

REFUSED = {"present": end_status("conflict", "foreign_subinterface"),
           "removed": end_status("failed", "vpp_refused", retval=-30)}  # fmt: skip


@dataclass
class InMemoryRouter:
    """A router in memory. ``built``: by (VLL, side) the last row that it built, with its rate (bit/s).

    ``refusing``: the router answers that it can never do what the intent requests, and does nothing.
    """

    router: Router
    reachable: bool = True
    refusing: bool = False
    built: dict[tuple[UUID, str], tuple[IntendedEnd, int]] = field(default_factory=dict)
    on_its_way: Answered | None = None

    def send(self) -> None:
        """Send the current intent to the router; its answer is then on its way. An earlier answer is lost."""
        intent = next_intent(Router.objects.get(pk=self.router.pk))
        self.on_its_way = None
        if self.reachable:
            self.on_its_way = self._answer(intent)

    def answer(self, *, now: datetime) -> None:
        """Deliver the router's answer if there is one."""
        reply, self.on_its_way = self.on_its_way, None
        if reply is not None:
            answers_take(router=self.router, answers=reply.ends, now=now)

    def _answer(self, intent: RouterIntent) -> Answered:
        agent = StandInAgent(self.router.name)
        document = json.loads(intent.document())
        _status, answer = agent.accept(document)
        if self.refusing:
            self._refuse(answer, intent)
        else:
            self._build(intent)
        return reply_decode(json.dumps(answer).encode(), sent=intent)

    def _build(self, intent: RouterIntent) -> None:
        for key in intent.removed:
            self.built.pop((key.vll, key.side), None)
        rates = dict(
            Vll.objects.filter(pk__in=[row.vll for row in intent.present]).values_list("pk", "cir_bps")
        )
        for row in intent.present:
            self.built[row.vll, row.side] = row, rates[row.vll]

    def _refuse(self, answer: dict[str, Any], intent: RouterIntent) -> None:
        """Refuse all ends except those that the router has already built as the intent says."""
        present = {(str(row.vll), row.side): row for row in intent.present}
        for end in answer["ends"]:
            row = present.get((end["vll"], end["end"]))
            has = self.built.get((UUID(end["vll"]), end["end"]))
            if row is None and has is not None:
                end.update(REFUSED["removed"])
            elif row is not None and (has is None or has[0] != row):
                end.update(REFUSED["present"])
