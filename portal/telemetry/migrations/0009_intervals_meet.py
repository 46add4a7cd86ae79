"""An oper status begins where the last one ended, also when its event is dated before that one began."""

from django.db import migrations

FORWARD = """
CREATE OR REPLACE FUNCTION oper_interval_follows_the_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wanted text;
    closed timestamptz;
BEGIN
    SELECT oper_status INTO wanted FROM vll_vll WHERE id = NEW.vll_id AND lifecycle = 'active';
    UPDATE telemetry_operinterval SET ended_at = greatest(NEW.at, began_at)
        WHERE vll_id = NEW.vll_id AND ended_at IS NULL AND status IS DISTINCT FROM wanted
        RETURNING ended_at INTO closed;
    IF wanted IS NOT NULL THEN
        INSERT INTO telemetry_operinterval (vll_id, status, began_at)
        VALUES (NEW.vll_id, wanted, coalesce(closed, NEW.at)) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
"""
BACKWARD = """
CREATE OR REPLACE FUNCTION oper_interval_follows_the_event() RETURNS trigger LANGUAGE plpgsql AS $$
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
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0008_frozen_month")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
