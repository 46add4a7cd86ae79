"""The evidence kept of an agent's answer: the whole of it but the ends about which it says nothing new.

A router with a thousand VLLs answers for all of them each time, and one pending end is asked about every
few seconds; evidence that repeats itself would be hundreds of megabytes a day and router.
"""

from typing import Any

from portal.inventory.models import Router
from portal.vll.operations.path_probes import stored_probe_answers
from portal.vll.operations.router_answers import stored_answers
from provisioning.agent_reply_decoder import Reply


def evidence_of(reply: Reply, *, router: Router) -> dict[str, Any]:
    """The answer with only those ends that differ from what is stored; ``unchanged`` counts the others."""
    stored = stored_answers(router, {end.vll for end in reply.ends}) | stored_probe_answers(router)
    news = [
        said
        for said, end in zip(reply.document["ends"], reply.ends, strict=True)
        if stored.get((end.vll, end.side)) != (end.status, end.revision, end.reason, end.policed)
    ]
    return {**reply.document, "ends": news, "unchanged": len(reply.ends) - len(news)}
