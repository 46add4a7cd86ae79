"""Jobs: orders as asynchronous tasks that a client polls."""

from django.db.models import QuerySet
from rest_framework.permissions import IsAuthenticated

from portal.api.v1.etags import ConditionalRetrieveView
from portal.api.v1.permission_classes import caller
from portal.api.v1.serializers.jobs import JobSerializer
from portal.vll import queries
from portal.vll.models import Order


class JobView(ConditionalRetrieveView[Order]):
    """An order as a job: the order's status, a step for each end, and the address of the result.

    A job has the id of its order. Poll it every Retry-After seconds. A job that has ended has no Retry-After
    and never changes again.
    """

    permission_classes = [IsAuthenticated]
    queryset = Order.objects.none()
    serializer_class = JobSerializer

    def get_queryset(self) -> QuerySet[Order]:
        return queries.jobs(caller(self.request))

    def retrieved_headers(self, found: Order) -> dict[str, str]:
        return {} if found.is_terminal else {"Retry-After": "1"}
