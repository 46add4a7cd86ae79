"""Kinds of events that others are told of, by webhook, mail or both: as what, portal.notifications says."""

TOLD = frozenset(
    {
        "order.acknowledged",
        "order.held",
        "order.inProgress",
        "order.completed",
        "order.failed",
        "order.rejected",
        "order.cancelled",
        "order.overdue",
        "vll.active",
        "vll.suspended",
        "vll.pendingTerminate",
        "vll.terminated",
        "vll.cancelled",
        "vll.described",
        "vll.op-up",
        "vll.op-down",
        "vll.op-unknown",
        "vll.in_sync",
        "vll.drift",
        "vll.not_carried",
        "router.silent",
        "router.reporting",
        "webhook.disabled",
        "webhook.receiver_changed",
        "account.password_reset_asked",
        "account.opened",
    }
)
