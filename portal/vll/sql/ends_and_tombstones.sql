-- An end is never wanted on a router that also has to remove it: an agent refuses such a document as a whole.

-- Documents contain only tombstones of lines that have ended, so their ends may exist next to tombstones.
CREATE OR REPLACE FUNCTION an_end_is_no_tombstone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM vll_vlltombstone t
        JOIN vll_vllend e ON e.vll_id = t.vll_id AND e.side = t.side
        JOIN inventory_port p ON p.id = e.port_id
        JOIN vll_vll v ON v.id = t.vll_id
        WHERE t.vll_id = NEW.vll_id AND t.side = NEW.side AND t.router_id = p.router_id
          AND v.lifecycle NOT IN ('terminated', 'cancelled')
    ) THEN
        RAISE EXCEPTION 'end % of VLL % stands on a router that is to remove it', NEW.side, NEW.vll_id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'an_end_is_no_tombstone';
    END IF;
    RETURN NULL;
END $$;

-- Deferred, because the transaction that moves an end writes its two rows one after the other.
DROP TRIGGER IF EXISTS an_end_is_no_tombstone ON vll_vllend;
CREATE CONSTRAINT TRIGGER an_end_is_no_tombstone AFTER INSERT OR UPDATE OF port_id ON vll_vllend
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION an_end_is_no_tombstone();
DROP TRIGGER IF EXISTS a_tombstone_is_no_end ON vll_vlltombstone;
CREATE CONSTRAINT TRIGGER a_tombstone_is_no_end AFTER INSERT OR UPDATE ON vll_vlltombstone
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION an_end_is_no_tombstone();
