"""The audit trail. Each tracked table has a table of events, which triggers write and which nobody changes
later.

TRACKED lists the recorded columns of each recorded table. UNTRACKED lists the columns of these tables that
are not recorded. NOT_AUDITED lists all other tables, each with the reason: such tables contain secrets,
reports of routers or derived values, but no decisions of people. A guard test requires each table and each
column to be in one of these lists. After a change of TRACKED, run ``manage.py makemigrations audit``.
"""

from collections.abc import Iterable
from typing import Any

import pghistory
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.db import models

from portal.accounts.models import ApiToken, Customer, Invitation, Membership, User
from portal.alarms.models import OperatorState
from portal.allocation.models import ReservedVniRange
from portal.diagnosis.models import TroubleReport
from portal.inventory.models import (
    BackboneLink,
    Port,
    Router,
    RouterCertificate,
    RouterEnrolment,
    RouterFreeze,
    Site,
)
from portal.notifications.models import MailOptOut, Webhook
from portal.telemetry.models import Quarantine
from portal.vll.line_revision import ALLOCATED_END, REVISION
from portal.vll.line_spec import Property
from portal.vll.models import Order, Reservation, Vll, VllEnd


def _columns(properties: Iterable[Property]) -> str:
    return " ".join(each.column for each in properties)


TRACKED: dict[type[models.Model], str] = {
    Customer: "id name created_at approve_up_to_bps cooling_off_s retired_at",
    User: "id username first_name last_name email is_active is_staff is_superuser date_joined noc_role"
    " closed_with password_set_at language",
    Membership: "id user customer role",
    Invitation: "id customer email role invited_by made_with created_at expires_at accepted_at revoked_at",
    ApiToken: "id user made_with name prefix scopes allowed_networks created_at expires_at revoked_at",
    Authenticator: "id user type created_at",
    EmailAddress: "id user email verified primary",
    SocialAccount: "id user provider uid date_joined",
    Site: "id name latitude longitude",
    Router: "id name site loopback4 loopback6 underlay_table agent_url cpu cores line_test_pps calibration"
    " maintenance_since drained_since locked_since frozen_since dead_since retired_at",
    RouterFreeze: "id router reason by since until end_requested_at ended_at closed_at acknowledged_by",
    RouterCertificate: "id router serial fingerprint issued_at expires_at revoked_at enrolment",
    RouterEnrolment: "id router offered_by made_with created_at expires_at used_at",
    Port: "id router interface description kind customer speed_bps bookable_bps"
    " oversubscription_percent max_frame retired_at",
    BackboneLink: "id a_router a_interface a_metric a_ip_mtu z_router z_interface z_metric z_ip_mtu"
    " ipv4 ipv6 in_service",
    ReservedVniRange: "id first last reason",
    Vll: f"id customer description created_at lifecycle {_columns(REVISION)} revision wanted_present",
    VllEnd: f"id vll side {_columns(ALLOCATED_END)}",
    Order: "id vll customer action state revision ordered_by ordered_at failure approved_at retry_of before"
    " after described forced",
    Reservation: "id customer slot reserved_by created_at expires_at renewals cir_bps ends",
    MailOptOut: "id user group since",
    Quarantine: "id router reason month offset_ms state decided_at decided_by why",
    TroubleReport: "id vll customer reported_by reported_at note closed_by closed_at",
    OperatorState: "alarm acknowledged_by acknowledged_at note assigned_to silenced_by silenced_until",
    Webhook: "id customer url description types created_at created_by made_with secret_set_at previous_until"
    " disabled_at disabled_because",
}

UNTRACKED: dict[type[models.Model], str] = {
    User: "password last_login",
    Invitation: "sending_until sent_at",
    ApiToken: "digest last_used_at",
    Authenticator: "data last_used_at",
    # The identity provider's data, which change with each login.
    SocialAccount: "last_login extra_data",
    RouterCertificate: "der",
    RouterFreeze: "kept_since",
    RouterEnrolment: "digest",
    Router: "generation",
    Port: "booked_bps",
    # ``handover`` and the tags are not recorded: adoption and release follow from orders, and routers
    # reported the tags.
    Vll: "oper_status oper_since in_sync in_sync_since not_carried_since handover",
    VllEnd: "status status_revision status_at status_observation reason link_up link_since shut_down"
    " reachable observed_in_sync policed path_state path_since_ms drift contested vlan_loss"
    " changed_since_report access_tag_before tunnel_tag_before rebuild_requested_at",
    # The context of each event has the request id of the change, so the column is not needed.
    Order: "state_at alarmed_at request_id",
    # The diagnosis at the time of the report. It contains reports of routers.
    TroubleReport: "finding",
    Webhook: "secret previous_secret failures failing_since paused_until claim claimed_until",
}

# The tables that are not recorded, by reason.
_REASONS = {
    "not used: addresses come verified, with an invitation or from the NOC": "account.EmailConfirmation",
    "not used: what people may do is in their NOC role and memberships": (
        "accounts.User_groups accounts.User_user_permissions auth.Group auth.Group_permissions "
        "auth.Permission"
    ),
    "derived from rows; comments and acknowledgements are tracked": "alarms.Alarm",
    "the portal's own bookkeeping, which nobody decides": (
        "alarms.AlarmRound api.KeptAnswer contenttypes.ContentType inventory.TopologyVersion "
        "notifications.Delivery notifications.Mail notifications.MailLine notifications.ReportedMonth "
        "telemetry.AgentApiUptime telemetry.FrozenMonth telemetry.UnjudgedFiveMinutes vll.RouterConvergence "
        "vll.TunnelPath"
    ),
    "follows from orders and reservations, which are tracked": (
        "allocation.BandwidthBooking allocation.CoreBooking allocation.GreKeyLease allocation.GrePairLease "
        "allocation.PortVlanLease allocation.RouterLoad allocation.VniLease vll.EndMove vll.TombstoneTunnel "
        "vll.VllTombstone"
    ),
    "is itself a record that only grows": "events.Event",
    "is itself a record of who sent, started and cancelled it; its new objects are tracked": "imports.Import",
    "a line of an uploaded file; the objects that it creates are tracked": "imports.ImportRow",
    "written by triggers from ports and links, which are tracked": "inventory.InterfaceUse",
    "what routers say": (
        "inventory.ObservedInterface inventory.ObservedLoad inventory.ObservedRoute "
        "inventory.ObservedCircuit inventory.ObservedPath inventory.ObservedRouter inventory.RouterSilence "
        "inventory.TunnelAddress telemetry.AgentClock telemetry.RouterEvent telemetry.Sample vll.PlanResult"
    ),
    "which object of NetBox is which row, and how NetBox does; what it changes is tracked": (
        "netbox_sync.ExportedVll netbox_sync.NetboxObject netbox_sync.NetboxState"
    ),
    "a copy of NetBox's data; taking a line over is tracked": "netbox_sync.NetboxL2vpn",
    "is itself a record of the requester, the request and the result": "netbox_sync.NetboxRun",
    "not used: the events contain the person": "pghistory.Context",
    "no table: a way of reading that is not used": "pghistory.Events pghistory.MiddlewareEvents",
    "contains secrets; a login changes nothing that is kept": "sessions.Session",
    "not used: the provider is in the settings": "socialaccount.SocialApp",
    "not used: the provider's tokens are not stored": "socialaccount.SocialToken",
    "is itself a record that a trigger keeps from being changed": (
        "telemetry.MonthlyPercentile vll.Attempt vll.ActivationTest"
    ),
    "written by a trigger from events": "telemetry.OperInterval",
    "follows from what routers say, and the line's events tell of it": "vll.ForwardedLinkLoss",
}
# The reason, by table.
NOT_AUDITED = {table: reason for reason, tables in _REASONS.items() for table in tables.split()}


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
