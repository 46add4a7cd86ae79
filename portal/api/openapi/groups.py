"""The groups of operations in the documentation: a page each, for one or more of the schema's tags."""

from dataclasses import dataclass

from django.utils.translation import gettext_noop as _


@dataclass(frozen=True, slots=True)
class Group:
    """``slug`` is its part of the address. ``title`` and ``about`` are English; the page translates them."""

    slug: str
    title: str
    about: str
    tags: tuple[str, ...]


# What everybody uses comes first, then what is the NOC's.
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
        _("Holds"),
        _("Reserve VLANs and bandwidth for some minutes before you order."),
        ("holds",),
    ),
    Group("ports", _("Ports and sites"), _("Where lines can begin and end."), ("ports", "sites")),
    Group(
        "webhooks",
        _("Webhooks"),
        _("Send what happens to your own systems."),
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
        _("Lines that others made on the routers, and what is odd about them."),
        ("found-lines",),
    ),
    Group("links", _("Backbone links"), _("The links between routers, and what they lose."), ("links",)),
    Group(
        "customers", _("Customers"), _("Customers, and what each may order without approval."), ("customers",)
    ),
    Group(
        "people",
        _("People"),
        _("Accounts, NOC staff, and what a person has created."),
        ("people", "noc-staff"),
    ),
    Group("pools", _("Pools"), _("What is free and what is reserved."), ("pools", "vni-ranges")),
    Group(
        "quarantines",
        _("Quarantine"),
        _("Samples that cannot be true as they were reported."),
        ("quarantines",),
    ),
    Group("imports", _("Imports"), _("Bring your network in from tables."), ("imports",)),
    Group("netbox", _("NetBox"), _("State of the exchange with NetBox."), ("netbox",)),
)
GROUPS = {group.slug: group for group in (*FOR_EVERYBODY, *FOR_THE_NOC)}
