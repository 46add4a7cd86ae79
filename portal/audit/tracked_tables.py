"""The tables and columns that the audit trail records.

TRACKED lists the recorded columns of each recorded table. UNTRACKED lists the columns of these tables that
are not recorded. NOT_AUDITED lists all other tables, each with the reason: such tables contain secrets,
reports of routers or derived values, but no decisions of people. A guard test requires each table and each
column to be in one of these lists. After a change of TRACKED, run ``manage.py makemigrations audit``.
"""

from collections.abc import Iterable

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
from portal.vll.line_spec import ALLOCATED_END, REVISION, Property
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
    " changed_since_report access_tag_before tunnel_tag_before",
    # The context of each event has the request id of the change, so the column is not needed.
    Order: "state_at alarmed_at request_id",
    # The diagnosis at the time of the report. It contains reports of routers.
    TroubleReport: "finding",
    Webhook: "secret previous_secret failures failing_since paused_until called_until claim claimed_until",
}

_BY_ORDERS = "follows from orders and reservations, which are tracked"
_BY_ROUTERS = "what routers say"
_BY_THE_PORTAL = "the portal's own bookkeeping, which nobody decides"
_BY_NETBOX = "which object of NetBox is which row, and how NetBox does; what it changes is tracked"
_UNUSED = "not used: what people may do is in their NOC role and memberships"
NOT_AUDITED: dict[str, str] = {
    "account.EmailConfirmation": "not used: addresses come verified, with an invitation or from the NOC",
    "accounts.User_groups": _UNUSED,
    "accounts.User_user_permissions": _UNUSED,
    "alarms.Alarm": "derived from rows; comments and acknowledgements are tracked",
    "alarms.AlarmRound": _BY_THE_PORTAL,
    "allocation.BandwidthBooking": _BY_ORDERS,
    "allocation.CoreBooking": _BY_ORDERS,
    "allocation.GreKeyLease": _BY_ORDERS,
    "allocation.GrePairLease": _BY_ORDERS,
    "allocation.PortVlanLease": _BY_ORDERS,
    "allocation.RouterLoad": _BY_ORDERS,
    "allocation.VniLease": _BY_ORDERS,
    "api.KeptAnswer": _BY_THE_PORTAL,
    "auth.Group": _UNUSED,
    "auth.Group_permissions": _UNUSED,
    "auth.Permission": _UNUSED,
    "contenttypes.ContentType": _BY_THE_PORTAL,
    "events.Event": "is itself a record that only grows",
    "events.Outbox": _BY_THE_PORTAL,
    "imports.Import": "is itself a record of who sent, started and cancelled it; its new objects are tracked",
    "imports.ImportRow": "a line of an uploaded file; the objects that it creates are tracked",
    "inventory.InterfaceUse": "written by triggers from ports and links, which are tracked",
    "inventory.ObservedInterface": _BY_ROUTERS,
    "inventory.ObservedLoad": _BY_ROUTERS,
    "inventory.ObservedRoute": _BY_ROUTERS,
    "inventory.ObservedCircuit": _BY_ROUTERS,
    "inventory.ObservedPath": _BY_ROUTERS,
    "inventory.ObservedRouter": _BY_ROUTERS,
    "inventory.RouterSilence": _BY_ROUTERS,
    "inventory.TopologyVersion": _BY_THE_PORTAL,
    "inventory.TunnelAddress": _BY_ROUTERS,
    "netbox_sync.ExportedVll": _BY_NETBOX,
    "netbox_sync.NetboxL2vpn": "a copy of NetBox's data; taking a line over is tracked",
    "netbox_sync.NetboxObject": _BY_NETBOX,
    "netbox_sync.NetboxRun": "is itself a record of the requester, the request and the result",
    "netbox_sync.NetboxState": _BY_NETBOX,
    "notifications.Delivery": _BY_THE_PORTAL,
    "notifications.Mail": _BY_THE_PORTAL,
    "notifications.MailLine": _BY_THE_PORTAL,
    "notifications.ReportedMonth": _BY_THE_PORTAL,
    "pghistory.Context": "not used: the events contain the person",
    "pghistory.Events": "no table: a way of reading that is not used",
    "pghistory.MiddlewareEvents": "no table: a way of reading that is not used",
    "sessions.Session": "contains secrets; a login changes nothing that is kept",
    "socialaccount.SocialApp": "not used: the provider is in the settings",
    "socialaccount.SocialToken": "not used: the provider's tokens are not stored",
    "telemetry.AgentClock": _BY_ROUTERS,
    "telemetry.AgentApiUptime": _BY_THE_PORTAL,
    "telemetry.FrozenMonth": _BY_THE_PORTAL,
    "telemetry.MonthlyPercentile": "is itself a record that a trigger keeps from being changed",
    "telemetry.OperInterval": "written by a trigger from events",
    "telemetry.RouterEvent": _BY_ROUTERS,
    "telemetry.Sample": _BY_ROUTERS,
    "telemetry.UnjudgedFiveMinutes": _BY_THE_PORTAL,
    "vll.Attempt": "is itself a record that a trigger keeps from being changed",
    "vll.EndMove": _BY_ORDERS,
    "vll.ForwardedLinkLoss": "follows from what routers say, and the line's events tell of it",
    "vll.ActivationTest": "is itself a record that a trigger keeps from being changed",
    "vll.PlanResult": _BY_ROUTERS,
    "vll.RouterConvergence": _BY_THE_PORTAL,
    "vll.TombstoneTunnel": _BY_ORDERS,
    "vll.VllTombstone": _BY_ORDERS,
    "vll.TunnelPath": _BY_THE_PORTAL,
}
