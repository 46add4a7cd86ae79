"""The queue of each Celery task, by name or pattern; other tasks use ``provisioning``."""

from portal.accounts import task_names as accounts
from portal.alarms import task_names as alarms
from portal.api import task_names as api
from portal.imports import task_names as imports
from portal.notifications import task_names as notifications
from portal.telemetry import task_names as telemetry
from portal.vll import task_names as provisioning

TASK_QUEUES = {
    # Sweepers have their own worker: they raise alarms when all other workers are busy. Each of their tasks
    # ends within seconds, regardless of any backlog: it reads the current state or sends other tasks.
    provisioning.SWEEP: "sweepers",
    provisioning.MARK_STALE: "sweepers",
    provisioning.FORWARD_LINK_LOSSES: "sweepers",
    alarms.WATCH: "sweepers",
    telemetry.WATCH_SILENCES: "sweepers",
    # Routers that probably do not answer delay only each other.
    provisioning.CONVERGE_DOUBTFUL: "doubtful",
    provisioning.KEEP_TUNNEL_PATHS: "telemetry",
    provisioning.TIME_PATHS: "telemetry",
    provisioning.TIME_PATHS_OF: "telemetry",
    provisioning.PROBE_PATHS: "telemetry",
    provisioning.PROBE_PATH: "telemetry",
    "telemetry.*": "telemetry",
    # Tasks whose duration grows with the backlog, up to half an hour. Nobody waits for them.
    telemetry.FREEZE_PERCENTILES: "batch",
    telemetry.KEEP_PARTITIONS: "batch",
    alarms.FORGET: "batch",
    notifications.MONTHLY_REPORTS: "batch",
    notifications.FORGET: "batch",
    accounts.CLEAR_SESSIONS: "batch",
    api.SWEEP_ANSWERS: "batch",
    # The task that makes deliveries from events must not wait behind deliveries.
    notifications.FAN_OUT: "sweepers",
    # Receivers with recent failures delay only each other.
    notifications.WEBHOOK_TURN: "webhooks",
    notifications.DOUBTFUL_WEBHOOK_TURN: "webhooks_doubtful",
    "notifications.*": "notifications",
    accounts.SEND_INVITATION: "notifications",
    accounts.RESEND_INVITATIONS: "notifications",
    "netbox.*": "netbox",
    # One import at a time, in short turns: tasks that are due every few seconds wait for at most one turn.
    imports.RUN: "telemetry",
    imports.SWEEP: "telemetry",
}
