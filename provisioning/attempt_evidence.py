"""The stored part of an agent's response: everything except ends without a change.

A router with a thousand VLLs reports all of them each time, and a pending end is polled every few seconds.
Complete responses would take hundreds of megabytes per day and router.
"""

from typing import Any

from portal.inventory.models import Router
from portal.vll.operations.path_probes import stored_probe_answers
from portal.vll.operations.router_answers import stored_answers
from provisioning.agent_reply_decoder import Reply


def evidence_of(reply: Reply, *, router: Router) -> dict[str, Any]:
    """Return the response with only those ends that differ from the stored answers.

    Its member ``unchanged`` is the number of omitted ends.
    """
    stored = stored_answers(router, {end.vll for end in reply.ends}) | stored_probe_answers(router)
    changed = [
        end_document
        for end_document, end in zip(reply.document["ends"], reply.ends, strict=True)
        if stored.get((end.vll, end.side)) != (end.status, end.revision, end.reason, end.policed)
    ]
    return {**reply.document, "ends": changed, "unchanged": len(reply.ends) - len(changed)}
