"""Every write to VLLs and orders. Each function owns one transaction; none talks to the network."""

from portal.vll.operations.advance import advance
from portal.vll.operations.attempts import attempt_record
from portal.vll.operations.describe import vll_describe
from portal.vll.operations.endpoints import EndRequest
from portal.vll.operations.observe import ends_observed, stale_vlls_mark
from portal.vll.operations.overdue import orders_overdue_alarm
from portal.vll.operations.submit import order_add
from portal.vll.operations.terminate import order_delete

__all__ = [
    "EndRequest",
    "advance",
    "attempt_record",
    "ends_observed",
    "order_add",
    "order_delete",
    "orders_overdue_alarm",
    "stale_vlls_mark",
    "vll_describe",
]
