-- The result of an activation test is immutable. Only the time when the line was connected again is added later.
CREATE OR REPLACE FUNCTION line_test_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state IN ('scheduled', 'waiting') THEN
        RETURN COALESCE(NEW, OLD);
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.restored_at IS NULL
       AND to_jsonb(NEW) - 'restored_at' = to_jsonb(OLD) - 'restored_at' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = 'evidence_is_append_only';
END $$;

CREATE OR REPLACE TRIGGER line_test_is_kept BEFORE UPDATE OR DELETE ON vll_linetest
    FOR EACH ROW EXECUTE FUNCTION line_test_is_kept();
