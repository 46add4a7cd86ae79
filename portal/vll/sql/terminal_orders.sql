-- An order that has ended never changes.

CREATE OR REPLACE FUNCTION terminal_order_never_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'order % is %', OLD.id, OLD.state
        USING ERRCODE = 'check_violation', CONSTRAINT = 'terminal_order_never_changes';
END $$;

CREATE OR REPLACE TRIGGER terminal_order_never_changes BEFORE UPDATE ON vll_order
    FOR EACH ROW WHEN (OLD.state IN ('completed', 'failed', 'rejected', 'cancelled'))
    EXECUTE FUNCTION terminal_order_never_changes();
