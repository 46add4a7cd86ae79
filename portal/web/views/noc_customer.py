"""Taking back the retirement of a customer."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from portal.accounts import permissions
from portal.accounts.models import Customer
from portal.core import clock
from portal.vll.guarded_inventory_deletion import customer_return
from portal.web.access_control import SignedInRequest, requires


@requires(permissions.may_remove_from_the_network)
@require_POST
def reopen(request: SignedInRequest, customer_id: int) -> HttpResponse:
    """The customer as it was, but for its API tokens and invitations."""
    customer_return(customer=get_object_or_404(Customer, pk=customer_id), user=request.user, now=clock.now())
    messages.success(request, _("The customer is open again. Its API tokens stay revoked."))
    return redirect("web:noc-customers")
