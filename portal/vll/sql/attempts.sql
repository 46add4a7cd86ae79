-- Equal attempts are counted in one row. Attempts that are no longer needed may be deleted. Everything else of
-- an attempt is immutable.

-- The newest attempt of a router is needed, and so are attempts during an order that is still open and concerns
-- the router.
CREATE OR REPLACE FUNCTION attempt_is_needed(a vll_attempt) RETURNS boolean LANGUAGE sql STABLE AS $$
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

-- True for the last attempt that has a result for some end at some revision.
CREATE OR REPLACE FUNCTION attempt_has_a_last_word(a vll_attempt) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM jsonb_array_elements(
            CASE jsonb_typeof(a.answer -> 'ends') WHEN 'array' THEN a.answer -> 'ends' ELSE '[]' END) AS said
        WHERE NOT EXISTS (
            SELECT FROM vll_attempt later
            WHERE later.router_id = a.router_id AND later.id > a.id
              AND later.answer @> jsonb_build_object('ends', jsonb_build_array(jsonb_build_object(
                  'vll', said -> 'vll', 'end', said -> 'end', 'revision', said -> 'revision')))))
$$;

CREATE OR REPLACE FUNCTION attempt_only_counts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    rest vll_attempt := NEW;
BEGIN
    IF NEW.times = OLD.times + 1
       AND NEW.finished_at >= OLD.finished_at AND NEW.generation >= OLD.generation THEN
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

-- A transaction that deletes attempts sets longline.attempts_before.
CREATE OR REPLACE FUNCTION attempt_is_forgotten_when_old() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE TRIGGER attempt_only_counts BEFORE UPDATE ON vll_attempt
    FOR EACH ROW EXECUTE FUNCTION attempt_only_counts();
CREATE OR REPLACE TRIGGER attempt_is_forgotten_when_old BEFORE DELETE ON vll_attempt
    FOR EACH ROW EXECUTE FUNCTION attempt_is_forgotten_when_old();
