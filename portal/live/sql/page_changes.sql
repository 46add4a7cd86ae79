-- Notify open pages of changed data with the commit, on the channel of the live process
-- (portal.processes.live_streams). A notification names a line, the owner of a port, or the network, but not
-- the change: pages load it with the permissions of their reader. PostgreSQL sends equal notifications of one
-- transaction once.

-- Columns that no page shows, and columns that each report writes every 10 s, cause no notification.

-- "line:<id of the line>:<id of the customer>"
CREATE OR REPLACE FUNCTION tell_pages_of_line(line uuid, customer bigint) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('longline_live', 'line:' || line || ':' || customer)
$$;

CREATE OR REPLACE FUNCTION line_is_told_to_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell_pages_of_line(NEW.id, NEW.customer_id);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER new_line_is_told_to_pages AFTER INSERT ON vll_vll
    FOR EACH ROW EXECUTE FUNCTION line_is_told_to_pages();
CREATE OR REPLACE TRIGGER line_is_told_to_pages AFTER UPDATE ON vll_vll FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION line_is_told_to_pages();

-- Orders and trouble reports contain their line and its customer.
CREATE OR REPLACE FUNCTION customers_row_is_told_to_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell_pages_of_line(NEW.vll_id, NEW.customer_id);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER new_order_is_told_to_pages AFTER INSERT ON vll_order
    FOR EACH ROW EXECUTE FUNCTION customers_row_is_told_to_pages();
CREATE OR REPLACE TRIGGER order_is_told_to_pages AFTER UPDATE ON vll_order FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION customers_row_is_told_to_pages();
CREATE OR REPLACE TRIGGER trouble_is_told_to_pages AFTER INSERT OR UPDATE ON diagnosis_troublereport
    FOR EACH ROW EXECUTE FUNCTION customers_row_is_told_to_pages();

-- Ends and activation tests contain only their line.
CREATE OR REPLACE FUNCTION row_of_a_line_is_told_to_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell_pages_of_line(id, customer_id) FROM vll_vll WHERE id = NEW.vll_id;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER end_is_told_to_pages AFTER UPDATE ON vll_vllend FOR EACH ROW
    WHEN ((OLD.port_id, OLD.tagging, OLD.outer_vlan, OLD.inner_vlan, OLD.exact_match, OLD.tunnel_address,
           OLD.status, OLD.status_revision, OLD.reason, OLD.link_up, OLD.reachable, OLD.observed_in_sync,
           OLD.policed, OLD.path_state, OLD.path_since_ms, OLD.drift, OLD.contested)
          IS DISTINCT FROM
          (NEW.port_id, NEW.tagging, NEW.outer_vlan, NEW.inner_vlan, NEW.exact_match, NEW.tunnel_address,
           NEW.status, NEW.status_revision, NEW.reason, NEW.link_up, NEW.reachable, NEW.observed_in_sync,
           NEW.policed, NEW.path_state, NEW.path_since_ms, NEW.drift, NEW.contested))
    EXECUTE FUNCTION row_of_a_line_is_told_to_pages();
CREATE OR REPLACE TRIGGER line_test_is_told_to_pages AFTER INSERT OR UPDATE ON vll_linetest
    FOR EACH ROW EXECUTE FUNCTION row_of_a_line_is_told_to_pages();

-- "ports:<id of the customer>", or "ports:" for a port without a customer.
CREATE OR REPLACE FUNCTION tell_pages_of_ports(customer bigint) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('longline_live', 'ports:' || coalesce(customer::text, ''))
$$;

CREATE OR REPLACE FUNCTION port_is_told_to_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM tell_pages_of_ports(OLD.customer_id);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM tell_pages_of_ports(NEW.customer_id);
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER new_port_is_told_to_pages AFTER INSERT OR DELETE ON inventory_port
    FOR EACH ROW EXECUTE FUNCTION port_is_told_to_pages();
CREATE OR REPLACE TRIGGER port_is_told_to_pages AFTER UPDATE ON inventory_port FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION port_is_told_to_pages();

-- "network": routers, links and paths.
CREATE OR REPLACE FUNCTION network_is_told_to_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('longline_live', 'network');
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER new_router_is_told_to_pages AFTER INSERT OR DELETE ON inventory_router
    FOR EACH ROW EXECUTE FUNCTION network_is_told_to_pages();
-- Not for the generation, which each order increments.
CREATE OR REPLACE TRIGGER router_is_told_to_pages AFTER UPDATE ON inventory_router FOR EACH ROW
    WHEN ((OLD.name, OLD.site_id, OLD.agent_url, OLD.cores, OLD.calibration, OLD.maintenance_since,
           OLD.drained_since, OLD.held_since, OLD.dead_since, OLD.retired_at)
          IS DISTINCT FROM
          (NEW.name, NEW.site_id, NEW.agent_url, NEW.cores, NEW.calibration, NEW.maintenance_since,
           NEW.drained_since, NEW.held_since, NEW.dead_since, NEW.retired_at))
    EXECUTE FUNCTION network_is_told_to_pages();
CREATE OR REPLACE TRIGGER first_report_is_told_to_pages AFTER INSERT ON inventory_observedrouter
    FOR EACH ROW EXECUTE FUNCTION network_is_told_to_pages();
CREATE OR REPLACE TRIGGER report_is_told_to_pages AFTER UPDATE ON inventory_observedrouter FOR EACH ROW
    WHEN ((OLD.boot_id, OLD.agent_version, OLD.vpp_connected, OLD.vpp_absent, OLD.vpp_hangs, OLD.vpp_version,
           OLD.vpp_booted_at, OLD.set_aside)
          IS DISTINCT FROM
          (NEW.boot_id, NEW.agent_version, NEW.vpp_connected, NEW.vpp_absent, NEW.vpp_hangs, NEW.vpp_version,
           NEW.vpp_booted_at, NEW.set_aside))
    EXECUTE FUNCTION network_is_told_to_pages();
CREATE OR REPLACE TRIGGER new_silence_is_told_to_pages AFTER INSERT ON inventory_routersilence
    FOR EACH ROW EXECUTE FUNCTION network_is_told_to_pages();
CREATE OR REPLACE TRIGGER silence_is_told_to_pages AFTER UPDATE ON inventory_routersilence FOR EACH ROW
    WHEN ((OLD.until, OLD.counts_as_down) IS DISTINCT FROM (NEW.until, NEW.counts_as_down))
    EXECUTE FUNCTION network_is_told_to_pages();
CREATE OR REPLACE TRIGGER failure_is_told_to_pages AFTER UPDATE ON vll_routerconvergence FOR EACH ROW
    WHEN ((OLD.failures, OLD.last_error) IS DISTINCT FROM (NEW.failures, NEW.last_error))
    EXECUTE FUNCTION network_is_told_to_pages();
CREATE OR REPLACE TRIGGER new_link_is_told_to_pages AFTER INSERT OR DELETE ON inventory_backbonelink
    FOR EACH ROW EXECUTE FUNCTION network_is_told_to_pages();
CREATE OR REPLACE TRIGGER link_is_told_to_pages AFTER UPDATE ON inventory_backbonelink FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION network_is_told_to_pages();
CREATE OR REPLACE TRIGGER path_is_told_to_pages AFTER UPDATE ON vll_tunnelpath FOR EACH ROW
    WHEN ((OLD.in_use, OLD.finding, OLD.proven_ip_mtu, OLD.black_hole_since)
          IS DISTINCT FROM (NEW.in_use, NEW.finding, NEW.proven_ip_mtu, NEW.black_hole_since))
    EXECUTE FUNCTION network_is_told_to_pages();

-- An interface belongs to the network, and to the owner of the port that uses it.
CREATE OR REPLACE FUNCTION interface_is_told_to_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('longline_live', 'network');
    PERFORM tell_pages_of_ports(customer_id) FROM inventory_port
        WHERE router_id = NEW.router_id AND interface = NEW.name;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER new_interface_is_told_to_pages AFTER INSERT ON inventory_observedinterface
    FOR EACH ROW EXECUTE FUNCTION interface_is_told_to_pages();
CREATE OR REPLACE TRIGGER interface_is_told_to_pages AFTER UPDATE ON inventory_observedinterface FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION interface_is_told_to_pages();
