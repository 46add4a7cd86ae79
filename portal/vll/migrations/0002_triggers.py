"""Rules that a CHECK cannot say: two ends, attempts that stay as they were, terminal orders that never change."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION vll_has_exactly_two_ends() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- Deferred: within the transaction that makes a VLL its ends come after it.
CREATE CONSTRAINT TRIGGER vll_has_exactly_two_ends AFTER INSERT ON vll_vll
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION vll_has_exactly_two_ends();
CREATE CONSTRAINT TRIGGER vll_keeps_its_two_ends AFTER INSERT OR DELETE ON vll_vllend
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION vll_has_exactly_two_ends();

CREATE FUNCTION evidence_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = 'evidence_is_append_only';
END $$;

CREATE TRIGGER attempt_is_append_only BEFORE UPDATE OR DELETE ON vll_attempt
    FOR EACH ROW EXECUTE FUNCTION evidence_is_append_only();

CREATE FUNCTION terminal_order_never_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'order % is %', OLD.id, OLD.state
        USING ERRCODE = 'check_violation', CONSTRAINT = 'terminal_order_never_changes';
END $$;

CREATE TRIGGER terminal_order_never_changes BEFORE UPDATE ON vll_order
    FOR EACH ROW WHEN (OLD.state IN ('completed', 'failed', 'rejected', 'cancelled'))
    EXECUTE FUNCTION terminal_order_never_changes();
"""

BACKWARD = """
DROP TRIGGER terminal_order_never_changes ON vll_order;
DROP FUNCTION terminal_order_never_changes();
DROP TRIGGER attempt_is_append_only ON vll_attempt;
DROP FUNCTION evidence_is_append_only();
DROP TRIGGER vll_keeps_its_two_ends ON vll_vllend;
DROP TRIGGER vll_has_exactly_two_ends ON vll_vll;
DROP FUNCTION vll_has_exactly_two_ends();
"""


class Migration(migrations.Migration):
    dependencies = [("vll", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
