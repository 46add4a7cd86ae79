"""The expiry times of the CA's certificate and of the portal's own certificate.

The expiry times of routers' certificates are in routers.py.
"""

import logging
from collections.abc import Iterator

from cryptography import x509
from django.conf import settings
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

log = logging.getLogger(__name__)


def families() -> Iterator[Metric]:
    valid = GaugeMetricFamily(
        "longline_certificate_expiry_timestamp_seconds",
        "End of the CA's certificate (of two, the earlier end) and of the portal's for agents.",
        labels=["certificate"],
    )
    for name in ("ca", "portal"):
        path = settings.LONGLINE_PKI_DIR / f"{name}.pem"
        try:
            # During a rollover, the file contains two CAs. The earlier expiry counts.
            found = x509.load_pem_x509_certificates(path.read_bytes())
        except (OSError, ValueError) as error:
            log.warning("metrics: %s cannot be read: %s", path, error)
        else:
            valid.add_metric([name], min(each.not_valid_after_utc for each in found).timestamp())
    yield valid
