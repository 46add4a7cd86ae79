"""The Celery tasks: the name and the queue of each, and how often beat sends it.

The portal sends tasks by these names, because it imports neither ``provisioning`` nor the tasks of a higher
layer. All tasks that beat sends are sweepers, and safe to run twice.
"""

# The queue of each task with another queue than ``provisioning``, and the intervals in seconds.
TASK_QUEUES: dict[str, str] = {}
EVERY_S: dict[str, int] = {}


def _task(name: str, *, queue: str | None = None, every_s: int | None = None) -> str:
    """Declare a task, and return its name."""
    if queue is not None:
        TASK_QUEUES[name] = queue
    if every_s is not None:
        EVERY_S[name] = every_s
    return name


CONVERGE_ROUTER = _task("provisioning.converge_router")
# The same task, on separate workers: routers that probably do not answer delay only each other.
CONVERGE_DOUBTFUL = _task("provisioning.converge_doubtful_router", queue="doubtful")
ADOPT_GENERATION = _task("provisioning.adopt_agent_generation")
PLAN_ORDER = _task("provisioning.plan_order")
TEST_LINE = _task("provisioning.test_line")
REBUILD_END = _task("provisioning.rebuild_end")
EXPIRE_RESERVATIONS = _task("provisioning.free_holds", every_s=2)

# Sweepers have their own worker: they raise alarms when all other workers are busy. Each of their tasks ends
# within seconds, regardless of any backlog: it reads the current state or sends other tasks.
SWEEP_LOST_WORK = _task("provisioning.sweep", queue="sweepers", every_s=5)
MARK_STALE = _task("provisioning.mark_stale", queue="sweepers", every_s=10)
FORWARD_LINK_LOSSES = _task("provisioning.forward_link_losses", queue="sweepers", every_s=2)
WATCH_ALARMS = _task("alarms.watch", queue="sweepers", every_s=5)
WATCH_SILENCES = _task("telemetry.watch_silences", queue="sweepers", every_s=10)
# The task that makes deliveries from events must not wait behind deliveries.
FAN_OUT = _task("notifications.tell", queue="sweepers", every_s=2)

KEEP_TUNNEL_PATHS = _task("provisioning.keep_tunnel_paths", queue="telemetry", every_s=30)
TIME_PATHS = _task("provisioning.time_paths", queue="telemetry", every_s=10)
TIME_PATHS_OF = _task("provisioning.time_paths_of", queue="telemetry")
PROBE_PATHS = _task("provisioning.probe_paths", queue="telemetry", every_s=5)
PROBE_PATH = _task("provisioning.probe_path", queue="telemetry")
ROLL_UP = _task("telemetry.roll_up", queue="telemetry", every_s=60)
JUDGE_SILENCE = _task("telemetry.judge_silence", queue="telemetry")
# One import at a time, in short turns: tasks that are due every few seconds wait for at most one turn.
RUN_IMPORT = _task("imports.run", queue="telemetry")
SWEEP_IMPORTS = _task("imports.sweep", queue="telemetry", every_s=30)

# Tasks whose duration grows with the backlog, up to half an hour. Nobody waits for them.
FREEZE_PERCENTILES = _task("telemetry.freeze_percentiles", queue="batch", every_s=3600)
KEEP_PARTITIONS = _task("telemetry.keep_partitions", queue="batch", every_s=3600)
FORGET_ALARMS = _task("alarms.forget", queue="batch", every_s=3600)
MONTHLY_REPORTS = _task("notifications.monthly_reports", queue="batch", every_s=3600)
FORGET_NOTIFICATIONS = _task("notifications.forget", queue="batch", every_s=3600)
CLEAR_SESSIONS = _task("accounts.clear_sessions", queue="batch", every_s=3600)
SWEEP_ANSWERS = _task("api.sweep_answers", queue="batch", every_s=600)

WEBHOOK_TURN = _task("notifications.webhook_deliver", queue="webhooks")
# Receivers with recent failures delay only each other.
DOUBTFUL_WEBHOOK_TURN = _task("notifications.doubtful_webhook_turn", queue="webhooks_doubtful")
SEND_MAIL = _task("notifications.send_mail", queue="notifications")
SEND_INVITATION = _task("accounts.send_invitation", queue="notifications")
RESEND_INVITATIONS = _task("accounts.resend_invitations", queue="notifications", every_s=60)

SYNC_NETBOX = _task("netbox.sync", queue="netbox", every_s=15)
