-- An interface has one use: each port and each side of a link has a row, and all rows share one unique key.

CREATE OR REPLACE FUNCTION link_uses_its_interfaces() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM inventory_interfaceuse WHERE link_id = OLD.id;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO inventory_interfaceuse (router_id, interface, link_id)
        VALUES (NEW.a_router_id, NEW.a_interface, NEW.id), (NEW.z_router_id, NEW.z_interface, NEW.id);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION port_uses_its_interface() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM inventory_interfaceuse WHERE port_id = OLD.id;
    END IF;
    -- The interface of a retired port is free again.
    IF TG_OP <> 'DELETE' AND NEW.retired_at IS NULL THEN
        INSERT INTO inventory_interfaceuse (router_id, interface, port_id)
        VALUES (NEW.router_id, NEW.interface, NEW.id);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER link_uses_its_interfaces
    AFTER INSERT OR DELETE OR UPDATE OF a_router_id, a_interface, z_router_id, z_interface
    ON inventory_backbonelink FOR EACH ROW EXECUTE FUNCTION link_uses_its_interfaces();
CREATE OR REPLACE TRIGGER port_uses_its_interface
    AFTER INSERT OR DELETE OR UPDATE OF router_id, interface, retired_at
    ON inventory_port FOR EACH ROW EXECUTE FUNCTION port_uses_its_interface();
