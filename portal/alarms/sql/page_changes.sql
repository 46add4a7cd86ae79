-- Notify the NOC's open pages of raised, changed, cleared and acknowledged alarms with the commit (portal/live).
-- Pages get one notification for all rows of a transaction.

CREATE OR REPLACE FUNCTION alarms_are_told_to_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('longline_live', 'alarms');
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER alarms_are_told_to_pages AFTER INSERT OR UPDATE ON alarms_alarm
    FOR EACH STATEMENT EXECUTE FUNCTION alarms_are_told_to_pages();
CREATE OR REPLACE TRIGGER operator_states_are_told_to_pages AFTER INSERT OR UPDATE ON alarms_operatorstate
    FOR EACH STATEMENT EXECUTE FUNCTION alarms_are_told_to_pages();
