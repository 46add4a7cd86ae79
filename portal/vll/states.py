"""The states of orders and VLLs and the moves between them (vocabulary: MEF 57.2, MEF 116, RFC 9181)."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class OrderState(models.TextChoices):
    """MEF 57.2 order states."""

    ACKNOWLEDGED = "acknowledged", _("Acknowledged")
    PENDING_APPROVAL = "held", _("Pending approval")
    IN_PROGRESS = "inProgress", _("In Progress")
    PENDING_CANCELLATION = "pendingCancellation", _("Pending Cancellation")
    COMPLETED = "completed", _("Completed")
    FAILED = "failed", _("Failed")
    REJECTED = "rejected", _("Rejected")
    CANCELLED = "cancelled", _("Cancelled")


class OrderAction(models.TextChoices):
    """MEF 57.2 order item actions, and ``test``: an activation test, which does not change the line."""

    ADD = "add", _("Add")
    MODIFY = "modify", _("Modify")
    DELETE = "delete", _("Delete")
    TEST = "test", _("Test")


class Lifecycle(models.TextChoices):
    """MEF 116 / MEF 81 product life cycle."""

    PENDING_ACTIVE = "pendingActive"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    PENDING_TERMINATE = "pendingTerminate"
    TERMINATED = "terminated"
    CANCELLED = "cancelled"


class AdminStatus(models.TextChoices):
    """RFC 9181 admin status."""

    UP = "admin-up"
    DOWN = "admin-down"
    TESTING = "admin-testing"


class OperStatus(models.TextChoices):
    """RFC 9181 operational status."""

    UP = "op-up"
    DOWN = "op-down"
    UNKNOWN = "op-unknown"


class Handover(models.TextChoices):
    """The steps between a foreign and a managed line (ADR 43). An adopted line is like any other line."""

    NONE = ""
    # The routers must take over the line unchanged.
    ADOPT = "adopt"
    # The routers have taken over the line, and the order that adopts it is still open. Undoing that order
    # ends the management of the line.
    ADOPTED = "adopted"
    # The routers must stop managing the line and leave it unchanged.
    RELEASE = "release"


ORDER_TRANSITIONS: dict[str, frozenset[str]] = {
    OrderState.ACKNOWLEDGED: frozenset({OrderState.PENDING_APPROVAL, OrderState.IN_PROGRESS}),
    OrderState.PENDING_APPROVAL: frozenset(
        {OrderState.IN_PROGRESS, OrderState.REJECTED, OrderState.CANCELLED}
    ),
    OrderState.IN_PROGRESS: frozenset(
        {OrderState.COMPLETED, OrderState.FAILED, OrderState.PENDING_CANCELLATION}
    ),
    OrderState.PENDING_CANCELLATION: frozenset({OrderState.CANCELLED}),
    OrderState.COMPLETED: frozenset(),
    OrderState.FAILED: frozenset(),
    OrderState.REJECTED: frozenset(),
    OrderState.CANCELLED: frozenset(),
}
TERMINAL_ORDER_STATES = frozenset(state for state, nexts in ORDER_TRANSITIONS.items() if not nexts)
# Actions on a line in service. The line exists before and after them.
IN_SERVICE_ACTIONS = frozenset({OrderAction.MODIFY, OrderAction.TEST})
# States of orders that a user cancelled or the NOC rejected.
CALLED_OFF = frozenset({OrderState.CANCELLED, OrderState.REJECTED})

LIFECYCLE_TRANSITIONS: dict[str, frozenset[str]] = {
    Lifecycle.PENDING_ACTIVE: frozenset({Lifecycle.ACTIVE, Lifecycle.CANCELLED}),
    Lifecycle.ACTIVE: frozenset({Lifecycle.SUSPENDED, Lifecycle.PENDING_TERMINATE}),
    Lifecycle.SUSPENDED: frozenset({Lifecycle.ACTIVE, Lifecycle.PENDING_TERMINATE}),
    Lifecycle.PENDING_TERMINATE: frozenset({Lifecycle.TERMINATED, Lifecycle.ACTIVE, Lifecycle.SUSPENDED}),
    Lifecycle.TERMINATED: frozenset(),
    Lifecycle.CANCELLED: frozenset(),
}
IN_SERVICE = (Lifecycle.ACTIVE, Lifecycle.SUSPENDED)
TERMINAL_LIFECYCLES = frozenset(state for state, nexts in LIFECYCLE_TRANSITIONS.items() if not nexts)
