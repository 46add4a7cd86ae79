"""Draws a new version of the topology by trigger, in the transaction that changes the underlay.

Drawn and not counted: a number that a rollback took back would come again with other content.
"""

from django.db import migrations

FORWARD = """
CREATE FUNCTION topology_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO inventory_topologyversion (id, version) VALUES (1, gen_random_uuid())
        ON CONFLICT (id) DO UPDATE SET version = EXCLUDED.version;
    RETURN NULL;
END $$;

CREATE TRIGGER link_changes_topology AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON inventory_backbonelink
    FOR EACH STATEMENT EXECUTE FUNCTION topology_changed();
CREATE TRIGGER router_changes_topology AFTER INSERT OR DELETE OR UPDATE OF name, agent_url ON inventory_router
    FOR EACH STATEMENT EXECUTE FUNCTION topology_changed();
-- Reports arrive all the time; only a changed MTU is a changed topology.
CREATE TRIGGER observed_mtu_changes_topology AFTER UPDATE OF ip_mtu, name ON inventory_observedinterface
    FOR EACH ROW WHEN (OLD.ip_mtu IS DISTINCT FROM NEW.ip_mtu OR OLD.name IS DISTINCT FROM NEW.name)
    EXECUTE FUNCTION topology_changed();
CREATE TRIGGER observed_interface_changes_topology AFTER INSERT OR DELETE ON inventory_observedinterface
    FOR EACH ROW EXECUTE FUNCTION topology_changed();
"""

BACKWARD = """
DROP TRIGGER link_changes_topology ON inventory_backbonelink;
DROP TRIGGER router_changes_topology ON inventory_router;
DROP TRIGGER observed_mtu_changes_topology ON inventory_observedinterface;
DROP TRIGGER observed_interface_changes_topology ON inventory_observedinterface;
DROP FUNCTION topology_changed();
DELETE FROM inventory_topologyversion;
"""


class Migration(migrations.Migration):
    dependencies = [("inventory", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
