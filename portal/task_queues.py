"""In which queue each Celery task waits: by name or pattern, and what is not here in ``provisioning``."""

from portal.accounts import task_names as accounts
from portal.alarms import task_names as alarms
from portal.imports import task_names as imports
from portal.notifications import task_names as notifications
from portal.vll import task_names as provisioning

TASK_QUEUES = {
    # Sweepers have a worker of their own: they raise the alarms when all others are busy.
    provisioning.SWEEP: "sweepers",
    provisioning.MARK_STALE: "sweepers",
    provisioning.FORWARD_LINK_LOSSES: "sweepers",
    alarms.WATCH: "sweepers",
    alarms.FORGET: "telemetry",
    # Routers that probably do not answer hold up each other, and nobody else.
    provisioning.CONVERGE_DOUBTFUL: "doubtful",
    provisioning.KEEP_TUNNEL_PATHS: "telemetry",
    provisioning.TIME_PATHS: "telemetry",
    provisioning.TIME_PATHS_OF: "telemetry",
    provisioning.PROBE_PATHS: "telemetry",
    provisioning.PROBE_PATH: "telemetry",
    "telemetry.*": "telemetry",
    # What makes deliveries of events is not to wait behind any of them.
    notifications.TELL: "sweepers",
    # Receivers that failed last hold up each other, and nobody else.
    notifications.WEBHOOK_TURN: "webhooks",
    notifications.DOUBTFUL_WEBHOOK_TURN: "webhooks_doubtful",
    "notifications.*": "notifications",
    accounts.SEND_INVITATION: "notifications",
    accounts.RESEND_INVITATIONS: "notifications",
    "netbox.*": "netbox",
    # One import at a time, in short turns: what is asked for every few seconds waits for one turn at most.
    imports.RUN: "telemetry",
    imports.SWEEP: "telemetry",
}
