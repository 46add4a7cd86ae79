"""POST /api/agent/v1/certificate (docs/reference/agent-reports.md)."""

from typing import Annotated, Any, Literal

from cryptography.x509 import Certificate
from msgspec import Meta, Struct

from portal.api.agent.client_certificate import report_endpoint
from portal.core import clock
from portal.inventory.models import Router
from portal.inventory.operations.certificates import certificate_renew


class _Document(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    schema: Literal[1]
    csr_pem: Annotated[str, Meta(max_length=10_000)]
    ca_sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


@report_endpoint(_Document, with_certificate=True)
def certificate(router: Router, request: _Document, shown: Certificate) -> dict[str, Any]:
    """Return the certificate and the authorities that the agent must use from now on.

    If a value is null, the agent keeps the certificate or the authorities that it has.
    """
    renewed = certificate_renew(
        router=router,
        shown=shown,
        csr_pem=request.csr_pem,
        ca_sha256=request.ca_sha256,
        now=clock.now(),
    )
    return {"certificate_pem": renewed.certificate_pem, "ca_pem": renewed.ca_pem}
