"""Beat's schedule: the interval of each task in seconds. All tasks are sweepers and safe to run twice."""

from portal.accounts import task_names as accounts
from portal.alarms import task_names as alarms
from portal.api import task_names as api
from portal.imports import task_names as imports
from portal.netbox_sync import task_names as netbox
from portal.notifications import task_names as notifications
from portal.telemetry import task_names as telemetry
from portal.vll import task_names as provisioning

EVERY_S = {
    provisioning.SWEEP: 5,
    provisioning.EXPIRE_RESERVATIONS: 2,
    provisioning.MARK_STALE: 10,
    provisioning.FORWARD_LINK_LOSSES: 2,
    alarms.WATCH: 5,
    alarms.FORGET: 3600,
    provisioning.KEEP_TUNNEL_PATHS: 30,
    provisioning.TIME_PATHS: 10,
    provisioning.PROBE_PATHS: 5,
    notifications.FAN_OUT: 2,
    notifications.MONTHLY_REPORTS: 3600,
    notifications.FORGET: 3600,
    accounts.RESEND_INVITATIONS: 60,
    accounts.CLEAR_SESSIONS: 3600,
    telemetry.WATCH_SILENCES: 10,
    telemetry.ROLL_UP: 60,
    telemetry.FREEZE_PERCENTILES: 3600,
    telemetry.KEEP_PARTITIONS: 3600,
    api.SWEEP_ANSWERS: 600,
    imports.SWEEP: 30,
    netbox.SYNC: 15,
}
