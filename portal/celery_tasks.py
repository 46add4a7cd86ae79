"""Celery's tasks: the name, the queue and the interval of each.

The portal knows only the names of the tasks of ``provisioning``, not the tasks. This module imports nothing,
because the settings import it.
"""

CLEAR_SESSIONS = "accounts.clear_sessions"
SEND_INVITATION = "accounts.send_invitation"
RESEND_INVITATIONS = "accounts.resend_invitations"
WATCH_ALARMS = "alarms.watch"
FORGET_ALARMS = "alarms.forget"
SWEEP_ANSWERS = "api.sweep_answers"
RUN_IMPORT = "imports.run"
SWEEP_IMPORTS = "imports.sweep"
SYNC_NETBOX = "netbox.sync"
FAN_OUT = "notifications.tell"
WEBHOOK_TURN = "notifications.webhook_deliver"
DOUBTFUL_WEBHOOK_TURN = "notifications.doubtful_webhook_turn"
SEND_MAIL = "notifications.send_mail"
MONTHLY_REPORTS = "notifications.monthly_reports"
FORGET_NOTIFICATIONS = "notifications.forget"
KEEP_PARTITIONS = "telemetry.keep_partitions"
ROLL_UP = "telemetry.roll_up"
FREEZE_PERCENTILES = "telemetry.freeze_percentiles"
WATCH_SILENCES = "telemetry.watch_silences"
JUDGE_SILENCE = "telemetry.judge_silence"
CONVERGE_ROUTER = "provisioning.converge_router"
# The same task, on separate workers for routers that probably do not answer.
CONVERGE_DOUBTFUL = "provisioning.converge_doubtful_router"
ADOPT_GENERATION = "provisioning.adopt_agent_generation"
PLAN_ORDER = "provisioning.plan_order"
TEST_LINE = "provisioning.test_line"
KEEP_TUNNEL_PATHS = "provisioning.keep_tunnel_paths"
TIME_PATHS = "provisioning.time_paths"
TIME_PATHS_OF = "provisioning.time_paths_of"
REBUILD_END = "provisioning.rebuild_end"
PROBE_PATHS = "provisioning.probe_paths"
PROBE_PATH = "provisioning.probe_path"
SWEEP = "provisioning.sweep"
MARK_STALE = "provisioning.mark_stale"
FORWARD_LINK_LOSSES = "provisioning.forward_link_losses"
EXPIRE_RESERVATIONS = "provisioning.free_holds"

# The queue of each task, by name or pattern. Other tasks use ``provisioning``.
TASK_QUEUES = {
    # Sweepers have their own worker: they raise alarms when all other workers are busy. Each of their tasks
    # ends within seconds, regardless of any backlog: it reads the current state or sends other tasks.
    SWEEP: "sweepers",
    MARK_STALE: "sweepers",
    FORWARD_LINK_LOSSES: "sweepers",
    WATCH_ALARMS: "sweepers",
    WATCH_SILENCES: "sweepers",
    # Routers that probably do not answer delay only each other.
    CONVERGE_DOUBTFUL: "doubtful",
    KEEP_TUNNEL_PATHS: "telemetry",
    TIME_PATHS: "telemetry",
    TIME_PATHS_OF: "telemetry",
    PROBE_PATHS: "telemetry",
    PROBE_PATH: "telemetry",
    "telemetry.*": "telemetry",
    # Tasks whose duration grows with the backlog, up to half an hour. Nobody waits for them.
    FREEZE_PERCENTILES: "batch",
    KEEP_PARTITIONS: "batch",
    FORGET_ALARMS: "batch",
    MONTHLY_REPORTS: "batch",
    FORGET_NOTIFICATIONS: "batch",
    CLEAR_SESSIONS: "batch",
    SWEEP_ANSWERS: "batch",
    # The task that makes deliveries from events must not wait behind deliveries.
    FAN_OUT: "sweepers",
    # Receivers with recent failures delay only each other.
    WEBHOOK_TURN: "webhooks",
    DOUBTFUL_WEBHOOK_TURN: "webhooks_doubtful",
    "notifications.*": "notifications",
    SEND_INVITATION: "notifications",
    RESEND_INVITATIONS: "notifications",
    "netbox.*": "netbox",
    # One import at a time, in short turns: tasks that are due every few seconds wait for at most one turn.
    RUN_IMPORT: "telemetry",
    SWEEP_IMPORTS: "telemetry",
}

# Beat's schedule: the interval of each task in seconds. All tasks are sweepers and safe to run twice.
EVERY_S = {
    SWEEP: 5,
    EXPIRE_RESERVATIONS: 2,
    MARK_STALE: 10,
    FORWARD_LINK_LOSSES: 2,
    WATCH_ALARMS: 5,
    FORGET_ALARMS: 3600,
    KEEP_TUNNEL_PATHS: 30,
    TIME_PATHS: 10,
    PROBE_PATHS: 5,
    FAN_OUT: 2,
    MONTHLY_REPORTS: 3600,
    FORGET_NOTIFICATIONS: 3600,
    RESEND_INVITATIONS: 60,
    CLEAR_SESSIONS: 3600,
    WATCH_SILENCES: 10,
    ROLL_UP: 60,
    FREEZE_PERCENTILES: 3600,
    KEEP_PARTITIONS: 3600,
    SWEEP_ANSWERS: 600,
    SWEEP_IMPORTS: 30,
    SYNC_NETBOX: 15,
}
