"""Frozen percentiles stay as they are; oper status intervals follow the events."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION a_frozen_percentile_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the percentiles of a frozen month never change'
        USING ERRCODE = 'check_violation', CONSTRAINT = 'a_frozen_percentile_stays';
END $$;
CREATE TRIGGER a_frozen_percentile_stays BEFORE UPDATE OR DELETE ON telemetry_monthlypercentile
    FOR EACH ROW EXECUTE FUNCTION a_frozen_percentile_stays();

-- The line itself says what is true now, the event since when. Only a line in service and not suspended has
-- an oper status that counts.
CREATE FUNCTION oper_interval_follows_the_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wanted text;
BEGIN
    SELECT oper_status INTO wanted FROM vll_vll WHERE id = NEW.vll_id AND lifecycle = 'active';
    UPDATE telemetry_operinterval SET ended_at = greatest(NEW.at, began_at)
        WHERE vll_id = NEW.vll_id AND ended_at IS NULL AND status IS DISTINCT FROM wanted;
    IF wanted IS NOT NULL THEN
        INSERT INTO telemetry_operinterval (vll_id, status, began_at)
        VALUES (NEW.vll_id, wanted, NEW.at) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER oper_interval_follows_the_event AFTER INSERT ON events_event FOR EACH ROW
    WHEN (NEW.vll_id IS NOT NULL AND NEW.kind IN (
        'vll.op-up', 'vll.op-down', 'vll.op-unknown',
        'vll.active', 'vll.suspended', 'vll.pendingTerminate', 'vll.terminated', 'vll.cancelled'))
    EXECUTE FUNCTION oper_interval_follows_the_event();
INSERT INTO telemetry_operinterval (vll_id, status, began_at)
    SELECT id, oper_status, now() FROM vll_vll WHERE lifecycle = 'active';
"""
BACKWARD = """
DROP TRIGGER oper_interval_follows_the_event ON events_event;
DROP FUNCTION oper_interval_follows_the_event();
DROP TRIGGER a_frozen_percentile_stays ON telemetry_monthlypercentile;
DROP FUNCTION a_frozen_percentile_stays();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("telemetry", "0005_reports"),
        ("vll", "0001_initial"),
        ("events", "0001_initial"),
    ]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
