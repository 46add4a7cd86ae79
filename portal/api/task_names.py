"""The Celery names of the REST API's tasks."""

SWEEP_ANSWERS = "api.sweep_answers"
