"""The tasks of the REST API, by the names that Celery knows."""

SWEEP_ANSWERS = "api.sweep_answers"
