"""The tasks of alarms, by the names that Celery knows."""

WATCH = "alarms.watch"
FORGET = "alarms.forget"
