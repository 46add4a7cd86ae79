"""Since when a router is drained; the topology changes with it."""

from django.db import migrations, models
from django.db.models import Q

_TRIGGER = """
DROP TRIGGER router_changes_topology ON inventory_router;
CREATE TRIGGER router_changes_topology AFTER INSERT OR DELETE OR UPDATE OF {columns} ON inventory_router
    FOR EACH STATEMENT EXECUTE FUNCTION topology_changed();
"""


class Migration(migrations.Migration):
    dependencies = [("inventory", "0008_encapsulations_seen")]

    operations = [
        migrations.AddField("router", "drained_since", models.DateTimeField(blank=True, null=True)),
        migrations.AddConstraint(
            "router",
            models.CheckConstraint(
                condition=Q(drained_since__isnull=True) | Q(maintenance_since__isnull=False),
                name="a_drained_router_is_under_maintenance",
            ),
        ),
        migrations.RunSQL(
            _TRIGGER.format(columns="name, agent_url, drained_since"),
            _TRIGGER.format(columns="name, agent_url"),
        ),
    ]
