"""Celery's names of the tasks of telemetry."""

KEEP_PARTITIONS = "telemetry.keep_partitions"
ROLL_UP = "telemetry.roll_up"
FREEZE_PERCENTILES = "telemetry.freeze_percentiles"
WATCH_SILENCES = "telemetry.watch_silences"
JUDGE_SILENCE = "telemetry.judge_silence"
