"""The audit trail: a table of events per tracked table, written by triggers and never changed afterwards.

TRACKED names what is recorded, UNTRACKED what is not: secrets, and what routers report or the portal derives
rather than somebody decides. A guard test asks for every new column to be put in one of them; one that is
tracked needs ``manage.py makemigrations audit``.
"""

from typing import Any

import pghistory
from allauth.mfa.models import Authenticator
from django.db import models

from portal.accounts.models import ApiToken, Customer, Invitation, Membership, User
from portal.allocation.models import ReservedVniRange
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.vll.models import Order, Vll, VllEnd

TRACKED: dict[type[models.Model], str] = {
    Customer: "id name created_at approve_up_to_bps cooling_off_s retired_at",
    User: "id username first_name last_name email is_active is_staff is_superuser date_joined noc_role"
    " closed_with",
    Membership: "id user customer role",
    Invitation: "id customer email role invited_by created_at expires_at accepted_at revoked_at",
    ApiToken: "id user name prefix scopes allowed_networks created_at expires_at revoked_at",
    Authenticator: "id user type created_at",
    Site: "id name",
    Router: "id name site loopback4 loopback6 agent_url cpu cores maintenance_since drained_since held_since"
    " retired_at",
    Port: "id router interface description kind customer speed_bps bookable_bps max_frame retired_at",
    BackboneLink: "id a_router a_interface a_metric a_ip_mtu z_router z_interface z_metric z_ip_mtu"
    " ipv4 ipv6 in_service",
    ReservedVniRange: "id first last reason",
    Vll: "id customer description created_at lifecycle admin_status svc_mtu cir_bps requested_cbs_bytes"
    " eir_bps requested_ebs_bytes requested_transport encapsulation family vni frame revision wanted_present"
    " decommission_at",
    VllEnd: "id vll side port tagging requested_outer_vlan outer_vlan inner_vlan exact_match tunnel_address",
    Order: "id vll customer action state revision ordered_by ordered_at failure approved_at retry_of",
}

UNTRACKED: dict[type[models.Model], str] = {
    User: "password last_login",
    Invitation: "sending_until sent_at",
    ApiToken: "digest last_used_at",
    Authenticator: "data last_used_at",
    Router: "generation",
    Port: "booked_bps",
    Vll: "oper_status in_sync",
    VllEnd: "status status_revision status_at status_look reason link_up reachable observed_in_sync policed"
    " drift",
    # What a modify order keeps of the line is in the line's own events.
    Order: "state_at alarmed_at before after described",
}


def _track(model: type[models.Model], fields: list[str]) -> Any:
    name = f"{model.__name__}Event"
    pghistory.track(
        pghistory.InsertEvent(),
        pghistory.UpdateEvent(),
        pghistory.DeleteEvent(),
        fields=fields,
        context_id_field=None,  # type: ignore[arg-type]
        app_label="audit",
        model_name=name,
    )(model)
    return globals()[name]


EVENTS: dict[type[models.Model], Any] = {
    model: _track(model, fields.split()) for model, fields in TRACKED.items()
}
