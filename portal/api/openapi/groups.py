"""The groups of operations in the documentation. Each has a page, and one or more tags of the schema."""

from dataclasses import dataclass

from django.utils.translation import gettext_noop as _


@dataclass(frozen=True, slots=True)
class Group:
    """A group of operations, such as the operations on ports.

    ``slug`` is the last part of the address of the group's page. ``title`` and ``about`` are in English; the
    page translates them.
    """

    slug: str
    title: str
    about: str
    tags: tuple[str, ...]


FOR_EVERYBODY = (
    Group(
        "lines",
        _("Lines"),
        _("Order, change, suspend and remove lines; read their state, traffic and tests."),
        ("vlls", "vlls.csv", "months.csv", "trouble-reports"),
    ),
    Group("orders", _("Orders"), _("Follow an order until it has ended."), ("orders", "jobs")),
    Group(
        "holds",
        _("Reservations"),
        _("Reserve VLANs and bandwidth for some minutes before you order."),
        ("holds",),
    ),
    Group("ports", _("Ports and sites"), _("Where lines can begin and end."), ("ports", "sites")),
    Group(
        "webhooks",
        _("Webhooks"),
        _("Send events to your own systems."),
        ("webhooks", "webhook-deliveries", "event-types"),
    ),
    Group("team", _("Team"), _("The people of a customer, and who is invited."), ("members", "invitations")),
    Group("tokens", _("API tokens"), _("Create and revoke the tokens that programs use."), ("tokens",)),
    Group("mails", _("Mails"), _("Which notifications you get."), ("mail-preferences",)),
)
FOR_THE_NOC = (
    Group(
        "routers",
        _("Routers"),
        _("Routers, their certificates and maintenance, and how an agent enrols."),
        ("routers", "enroll"),
    ),
    Group(
        "found-lines",
        _("Found lines"),
        _("Lines on the routers that the portal does not manage."),
        ("found-lines",),
    ),
    Group("links", _("Backbone links"), _("The links between routers, and their losses."), ("links",)),
    Group(
        "customers",
        _("Customers"),
        _("Customers, and the bandwidth that each may order without approval."),
        ("customers",),
    ),
    Group(
        "people",
        _("People"),
        _("Accounts, NOC staff, and the objects that a person has created."),
        ("people", "noc-staff"),
    ),
    Group(
        "pools",
        _("Pools"),
        _("The use of VNIs, GRE keys, ports and cores, and reserved VNIs."),
        ("pools", "vni-ranges"),
    ),
    Group("imports", _("Imports"), _("Bring your network in from tables."), ("imports",)),
    Group("netbox", _("NetBox"), _("State of the exchange with NetBox."), ("netbox",)),
)
GROUPS = {group.slug: group for group in (*FOR_EVERYBODY, *FOR_THE_NOC)}
