"""Attempts that come to the same are counted on one row, and what nobody needs any more may be forgotten.

Of the evidence that is there already each row is one time.
"""

from django.contrib.postgres.indexes import GinIndex
from django.db import migrations, models
from django.db.models import Q

FORWARD = """
-- It is its router's newest, or an order is open that its router had to do with when it was made.
CREATE FUNCTION attempt_is_needed(a vll_attempt) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT FROM vll_attempt newer WHERE newer.router_id = a.router_id AND newer.id > a.id)
        OR EXISTS (
            SELECT FROM vll_order o
            WHERE NOT o.state IN ('cancelled', 'completed', 'failed', 'rejected')
              AND o.ordered_at <= a.finished_at
              AND (EXISTS (SELECT FROM vll_vllend e JOIN inventory_port p ON p.id = e.port_id
                           WHERE e.vll_id = o.vll_id AND p.router_id = a.router_id)
                OR EXISTS (SELECT FROM vll_vlltombstone t
                           WHERE t.vll_id = o.vll_id AND t.router_id = a.router_id)))
$$;

-- Of some end at some revision its router has said nothing else since.
CREATE FUNCTION attempt_has_a_last_word(a vll_attempt) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM jsonb_array_elements(
            CASE jsonb_typeof(a.answer -> 'ends') WHEN 'array' THEN a.answer -> 'ends' ELSE '[]' END) AS said
        WHERE NOT EXISTS (
            SELECT FROM vll_attempt later
            WHERE later.router_id = a.router_id AND later.id > a.id
              AND later.answer @> jsonb_build_object('ends', jsonb_build_array(jsonb_build_object(
                  'vll', said -> 'vll', 'end', said -> 'end', 'revision', said -> 'revision')))))
$$;

CREATE FUNCTION attempt_only_counts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    rest vll_attempt := NEW;
BEGIN
    IF NEW.times = OLD.times + 1 AND NEW.finished_at >= OLD.finished_at AND NEW.generation >= OLD.generation THEN
        rest.times := OLD.times;
        rest.finished_at := OLD.finished_at;
        rest.generation := OLD.generation;
        rest.intent_sha256 := OLD.intent_sha256;
    ELSIF NEW.kept THEN
        rest.kept := OLD.kept;
    END IF;
    IF rest IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME
            USING ERRCODE = 'check_violation', CONSTRAINT = 'evidence_is_append_only';
    END IF;
    RETURN NEW;
END $$;

-- Who forgets says so, in its own transaction: longline.attempts_before.
CREATE FUNCTION attempt_is_forgotten_when_old() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before timestamptz := nullif(current_setting('longline.attempts_before', true), '');
BEGIN
    IF before IS NULL OR OLD.finished_at >= before OR OLD.kept
       OR attempt_is_needed(OLD) OR attempt_has_a_last_word(OLD) THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME
            USING ERRCODE = 'check_violation', CONSTRAINT = 'evidence_is_append_only';
    END IF;
    RETURN OLD;
END $$;

DROP TRIGGER attempt_is_append_only ON vll_attempt;
DROP FUNCTION evidence_is_append_only();
CREATE TRIGGER attempt_only_counts BEFORE UPDATE ON vll_attempt
    FOR EACH ROW EXECUTE FUNCTION attempt_only_counts();
CREATE TRIGGER attempt_is_forgotten_when_old BEFORE DELETE ON vll_attempt
    FOR EACH ROW EXECUTE FUNCTION attempt_is_forgotten_when_old();
"""
BACKWARD = """
DROP TRIGGER attempt_is_forgotten_when_old ON vll_attempt;
DROP TRIGGER attempt_only_counts ON vll_attempt;
CREATE FUNCTION evidence_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = 'evidence_is_append_only';
END $$;
CREATE TRIGGER attempt_is_append_only BEFORE UPDATE OR DELETE ON vll_attempt
    FOR EACH ROW EXECUTE FUNCTION evidence_is_append_only();
DROP FUNCTION attempt_is_forgotten_when_old();
DROP FUNCTION attempt_only_counts();
DROP FUNCTION attempt_has_a_last_word(vll_attempt);
DROP FUNCTION attempt_is_needed(vll_attempt);
"""


class Migration(migrations.Migration):
    dependencies = [("vll", "0024_ask_at")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="content_sha256",
            field=models.CharField(db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="attempt",
            name="times",
            field=models.PositiveIntegerField(db_default=1, default=1),
        ),
        migrations.AddField(
            model_name="attempt", name="kept", field=models.BooleanField(db_default=False, default=False)
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(condition=Q(kept=False), fields=["started_at"], name="attempt_to_forget"),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=GinIndex(
                fields=["answer"], name="attempt_by_answer", opclasses=["jsonb_path_ops"], fastupdate=False
            ),
        ),
    ]
