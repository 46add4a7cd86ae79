-- A line has exactly two ends.

CREATE OR REPLACE FUNCTION vll_has_exactly_two_ends() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed uuid;
    ends integer;
BEGIN
    IF TG_TABLE_NAME = 'vll_vll' THEN
        changed := NEW.id;
    ELSIF TG_OP = 'DELETE' THEN
        changed := OLD.vll_id;
    ELSE
        changed := NEW.vll_id;
    END IF;
    IF EXISTS (SELECT 1 FROM vll_vll WHERE id = changed) THEN
        SELECT count(*) INTO ends FROM vll_vllend WHERE vll_id = changed;
        IF ends <> 2 THEN
            RAISE EXCEPTION 'VLL % has % ends', changed, ends
                USING ERRCODE = 'check_violation', CONSTRAINT = 'vll_has_exactly_two_ends';
        END IF;
    END IF;
    RETURN NULL;
END $$;

-- Deferred, because the transaction that creates a VLL writes its ends after it.
DROP TRIGGER IF EXISTS vll_has_exactly_two_ends ON vll_vll;
CREATE CONSTRAINT TRIGGER vll_has_exactly_two_ends AFTER INSERT ON vll_vll
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION vll_has_exactly_two_ends();
DROP TRIGGER IF EXISTS vll_keeps_its_two_ends ON vll_vllend;
CREATE CONSTRAINT TRIGGER vll_keeps_its_two_ends AFTER INSERT OR DELETE ON vll_vllend
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION vll_has_exactly_two_ends();
