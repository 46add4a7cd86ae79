"""The time of one page of 50 out of 100,000 VLLs: the first page, the last page, with filters and
with searches.
"""

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from bench.database import migrated
from bench.figures import Figure, percentile
from bench.sizes import sized
from bench.vlls import VLLS, installation_fill

ROUNDS = sized(30, smallest=3)
LISTS = "/api/v1/vlls"
NO_MATCH = ("q=nothing-like-it", "q=zz")
FIRST_PAGES = [LISTS, "/api/v1/orders", f"{LISTS}?lifecycle=active&router=router-7", f"{LISTS}?vlan=77"]
SEARCHES = [
    *("q=line%204712", "q=eth1997", "q=router-42", "q=77", "q=c81e728d", NO_MATCH[0]),
    # Searches with many matches: a text inside words, or the beginning of a word.
    *("q=1", "q=e", "q=ro", NO_MATCH[1]),
]


def measure() -> Iterator[Figure]:
    with migrated():
        installation_fill()
        from django.conf import settings

        settings.LONGLINE_API_READS_PER_MIN = 0
        noc, member = _clients()
        note = f"{VLLS} VLLs, NOC and a tenant with half of them"
        pages = [page for api in (noc, member) for page in _times(api, FIRST_PAGES)]
        yield Figure("list_p95_ms", percentile(pages, 95), "ms", note)
        yield Figure("list_queries", max(_queries(api, LISTS) for api in (noc, member)), "queries")
        last = _last_page(noc)
        ratio = median(_times(noc, [last])) / median(_times(noc, [LISTS]))
        yield Figure("list_last_to_first_ratio", ratio, "x", "medians, side by side; at most 1.5")
        taken = list(_scrapes())
        yield Figure(
            "metrics_scrape_ms", median(taken), "ms", f"{VLLS} VLLs and orders; at most 2 % of the time"
        )
        searches = [f"{LISTS}?{search}" for search in SEARCHES]
        found = [one for api in (noc, member) for one in _times(api, searches)]
        yield Figure("search_p95_ms", percentile(found, 95), "ms", note)


def _clients() -> tuple[Any, Any]:
    from django.test import Client

    from portal.accounts.models import Membership, User
    from portal.accounts.tokens import token_create
    from portal.core.clock import now

    noc = User.objects.create_user("nora", noc_role="noc")
    member = User.objects.create_user("alice")
    Membership.objects.create(user=member, customer_id=1, role="operator")
    tokens = [token_create(user=user, name="bench", now=now())[1] for user in (noc, member)]
    first, second = (
        Client(headers={"Authorization": f"Bearer {token}", "Host": "localhost"}) for token in tokens
    )
    return first, second


def _times(api: Any, urls: list[str]) -> list[float]:
    """Return the milliseconds of each response. The URLs take turns. The first round is a warm-up."""
    taken = []
    for number in range(ROUNDS + 1):
        for url in urls:
            began = time.perf_counter()
            response = api.get(url)
            if number:
                taken.append((time.perf_counter() - began) * 1_000)
            assert response.status_code == 200, response.content
            assert bool(response.json()["results"]) != url.endswith(NO_MATCH), (url, response.content)
    return taken


def _scrapes() -> Iterator[float]:
    """Yield the milliseconds of each scrape of the metrics of the installation."""
    from portal.metrics.registry import Installation

    for _ in range(ROUNDS // 3):
        began = time.perf_counter()
        metrics = {metric.name: metric.samples for metric in Installation().collect()}
        yield (time.perf_counter() - began) * 1_000
        assert sum(sample.value for sample in metrics["longline_vlls"]) == VLLS, metrics["longline_vlls"]


def _queries(api: Any, url: str) -> int:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        api.get(url)
    return len(captured)


def _last_page(api: Any) -> str:
    """Return the URL of the page that begins 50 rows before the end. It has a cursor, as in the links between
    pages.
    """
    from django.test import RequestFactory
    from rest_framework.request import Request

    from portal.api.rest.lists import NewestVllFirst
    from portal.vll.models import Vll

    before_last = Vll.objects.order_by("created_at", "id")[50:52]
    pages = NewestVllFirst()
    request = Request(RequestFactory(SERVER_NAME="localhost").get(LISTS, {"limit": 1}))
    pages.paginate_queryset(Vll.objects.filter(pk__in=[vll.pk for vll in before_last]), request)
    url = str(pages.get_paginated_response([]).data["next"]).replace("limit=1", "limit=50")
    assert len(api.get(url).json()["results"]) == 50
    return url
