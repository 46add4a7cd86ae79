"""The digests of a report's parts; and a tunnel's possible ends are part of the topology, by its version."""

from django.db import migrations, models

FORWARD = """
CREATE TRIGGER loopback_changes_topology AFTER UPDATE OF loopback4, loopback6 ON inventory_router
    FOR EACH ROW WHEN ((OLD.loopback4, OLD.loopback6) IS DISTINCT FROM (NEW.loopback4, NEW.loopback6))
    EXECUTE FUNCTION topology_changed();
CREATE TRIGGER tunnel_address_changes_topology AFTER INSERT OR DELETE ON inventory_tunneladdress
    FOR EACH ROW EXECUTE FUNCTION topology_changed();
"""
BACKWARD = """
DROP TRIGGER loopback_changes_topology ON inventory_router;
DROP TRIGGER tunnel_address_changes_topology ON inventory_tunneladdress;
"""


class Migration(migrations.Migration):
    dependencies = [("inventory", "0017_router_silence")]

    operations = [
        migrations.AddField(
            model_name="observedrouter",
            name="digests",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
