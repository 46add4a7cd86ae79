"""In which queue each Celery task waits: by name or pattern, and what is not here in ``provisioning``."""

from portal.accounts import task_names as accounts
from portal.alarms import task_names as alarms
from portal.api import task_names as api
from portal.imports import task_names as imports
from portal.notifications import task_names as notifications
from portal.telemetry import task_names as telemetry
from portal.vll import task_names as provisioning

TASK_QUEUES = {
    # Sweepers have a worker of their own: they raise the alarms when all others are busy. Each of their tasks
    # ends within seconds, whatever has piled up: it reads how the network is now, or sends other tasks.
    provisioning.SWEEP: "sweepers",
    provisioning.MARK_STALE: "sweepers",
    provisioning.FORWARD_LINK_LOSSES: "sweepers",
    alarms.WATCH: "sweepers",
    telemetry.WATCH_SILENCES: "sweepers",
    # Routers that probably do not answer hold up each other, and nobody else.
    provisioning.CONVERGE_DOUBTFUL: "doubtful",
    provisioning.KEEP_TUNNEL_PATHS: "telemetry",
    provisioning.TIME_PATHS: "telemetry",
    provisioning.TIME_PATHS_OF: "telemetry",
    provisioning.PROBE_PATHS: "telemetry",
    provisioning.PROBE_PATH: "telemetry",
    "telemetry.*": "telemetry",
    # Tasks that take as long as what has piled up, up to half an hour. Nobody waits for them.
    telemetry.FREEZE_PERCENTILES: "batch",
    telemetry.COUNT_ACCEPTED: "batch",
    telemetry.KEEP_PARTITIONS: "batch",
    alarms.FORGET: "batch",
    notifications.MONTHLY_REPORTS: "batch",
    notifications.FORGET: "batch",
    accounts.CLEAR_SESSIONS: "batch",
    api.SWEEP_ANSWERS: "batch",
    # What makes deliveries of events is not to wait behind any of them.
    notifications.FAN_OUT: "sweepers",
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
