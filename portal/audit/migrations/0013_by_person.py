"""An index of each table of events by who made the change, so that one person's are found however rare.

Only of changes that people made: most are made by tasks, and cost nothing more.
"""

from django.db import migrations

_TABLES = (
    "apitoken",
    "authenticator",
    "backbonelink",
    "customer",
    "emailaddress",
    "hold",
    "invitation",
    "mailoptout",
    "membership",
    "order",
    "port",
    "reservedvnirange",
    "router",
    "routercertificate",
    "routerenrolment",
    "site",
    "socialaccount",
    "user",
    "vll",
    "vllend",
    "webhook",
)


class Migration(migrations.Migration):
    # Each table by itself: an order writes to several of them, and would wait for one that is held already.
    atomic = False
    dependencies = [("audit", "0012_webhooks_and_mails")]

    operations = [
        migrations.RunSQL(
            f"CREATE INDEX IF NOT EXISTS audit_{name}_by_person ON audit_{name}event"
            " ((pgh_context ->> 'username'), pgh_id DESC)"
            " WHERE (pgh_context ->> 'username') IS NOT NULL",
            f"DROP INDEX IF EXISTS audit_{name}_by_person",
        )
        for name in _TABLES
    ]
