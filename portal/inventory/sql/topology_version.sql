-- Write a new version of the topology in the transaction that changes the underlay.
--
-- Versions are random. A counter would use the number of a rolled back transaction again for other content.

CREATE OR REPLACE FUNCTION topology_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO inventory_topologyversion (id, version) VALUES (1, gen_random_uuid())
        ON CONFLICT (id) DO UPDATE SET version = EXCLUDED.version;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER link_changes_topology
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON inventory_backbonelink
    FOR EACH STATEMENT EXECUTE FUNCTION topology_changed();
CREATE OR REPLACE TRIGGER router_changes_topology
    AFTER INSERT OR DELETE OR UPDATE OF name, agent_url, drained_since ON inventory_router
    FOR EACH STATEMENT EXECUTE FUNCTION topology_changed();

-- The possible tunnel endpoints are part of the topology.
CREATE OR REPLACE TRIGGER loopback_changes_topology AFTER UPDATE OF loopback4, loopback6 ON inventory_router
    FOR EACH ROW WHEN ((OLD.loopback4, OLD.loopback6) IS DISTINCT FROM (NEW.loopback4, NEW.loopback6))
    EXECUTE FUNCTION topology_changed();
CREATE OR REPLACE TRIGGER tunnel_address_changes_topology AFTER INSERT OR DELETE ON inventory_tunneladdress
    FOR EACH ROW EXECUTE FUNCTION topology_changed();

-- Reports arrive continuously. Only a changed MTU changes the topology.
CREATE OR REPLACE TRIGGER observed_mtu_changes_topology
    AFTER UPDATE OF ip_mtu, name ON inventory_observedinterface
    FOR EACH ROW WHEN (OLD.ip_mtu IS DISTINCT FROM NEW.ip_mtu OR OLD.name IS DISTINCT FROM NEW.name)
    EXECUTE FUNCTION topology_changed();
CREATE OR REPLACE TRIGGER observed_interface_changes_topology
    AFTER INSERT OR DELETE ON inventory_observedinterface
    FOR EACH ROW EXECUTE FUNCTION topology_changed();
