"""What agents reach, at the door that asks for their certificates."""

from django.urls import path

from portal.api.agent.counters import counters
from portal.api.agent.events import events
from portal.api.agent.observed import observed

urlpatterns = [
    path("api/agent/v1/counters", counters),
    path("api/agent/v1/events", events),
    path("api/agent/v1/observed", observed),
]
handler404 = "portal.api.agent.problems.not_found"
handler500 = "portal.api.agent.problems.server_error"
