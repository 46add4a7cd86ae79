-- The result of a line test is kept as it was found, for ever.
CREATE OR REPLACE FUNCTION line_test_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'waiting' THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME
            USING ERRCODE = 'check_violation', CONSTRAINT = 'evidence_is_append_only';
    END IF;
    RETURN COALESCE(NEW, OLD);
END $$;

CREATE OR REPLACE TRIGGER line_test_is_kept BEFORE UPDATE OR DELETE ON vll_linetest
    FOR EACH ROW EXECUTE FUNCTION line_test_is_kept();
