-- Alarms have been raised, changed or cleared, or somebody said something of them: the NOC's open pages are told
-- with the commit (portal/live). However many rows a round writes, they are told once.

CREATE OR REPLACE FUNCTION alarms_are_told_to_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('longline_live', 'alarms');
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER alarms_are_told_to_pages AFTER INSERT OR UPDATE ON alarms_alarm
    FOR EACH STATEMENT EXECUTE FUNCTION alarms_are_told_to_pages();
CREATE OR REPLACE TRIGGER operator_states_are_told_to_pages AFTER INSERT OR UPDATE ON alarms_operatorstate
    FOR EACH STATEMENT EXECUTE FUNCTION alarms_are_told_to_pages();
