"""The page with the free part of each pool from which lines get leases."""

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.allocation.pool_usage import pools
from portal.web.page_guard import SignedInRequest, requires


@requires(permissions.may_run_the_network)
def page(request: SignedInRequest) -> HttpResponse:
    return render(request, "noc/pools.html", {"pools": pools()})
