"""Jobs: the work behind an answer of 202."""

from django.db.models import QuerySet
from rest_framework.permissions import IsAuthenticated

from portal.api.v1.etags import ConditionalRetrieveView
from portal.api.v1.permission_classes import caller
from portal.api.v1.serializers.jobs import JobSerializer
from portal.vll import queries
from portal.vll.models import Order


class JobView(ConditionalRetrieveView[Order]):
    """An order as a job: its status, a step for each end, and where the result is.

    A job has the id of its order. Ask again after Retry-After seconds; a job that has ended says no such
    thing and never changes again.
    """

    permission_classes = [IsAuthenticated]
    queryset = Order.objects.none()
    serializer_class = JobSerializer

    def get_queryset(self) -> QuerySet[Order]:
        return queries.jobs(caller(self.request))

    def retrieved_headers(self, found: Order) -> dict[str, str]:
        return {} if found.is_terminal else {"Retry-After": "1"}
