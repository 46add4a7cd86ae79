"""The URLs of the agent API. It requires client certificates."""

from django.urls import path

from portal.api.agent_api import certificate, counters, events, line, observed

urlpatterns = [
    path("api/agent/v1/certificate", certificate),
    path("api/agent/v1/counters", counters),
    path("api/agent/v1/events", events),
    path("api/agent/v1/line", line),
    path("api/agent/v1/observed", observed),
]
handler404 = "portal.api.problem_details.not_found"
handler500 = "portal.api.problem_details.server_error"
