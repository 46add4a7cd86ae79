-- "netbox": notify open pages with the commit, as portal/live/sql does for lines, of the state of the exchange,
-- its runs, and lines that NetBox refuses.

CREATE OR REPLACE FUNCTION netbox_is_told_to_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('longline_live', 'netbox');
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER netbox_run_is_told_to_pages AFTER INSERT OR UPDATE ON netbox_sync_netboxrun
    FOR EACH ROW EXECUTE FUNCTION netbox_is_told_to_pages();
-- Not for the claim, which a worker renews while it runs.
CREATE OR REPLACE TRIGGER netbox_state_is_told_to_pages AFTER UPDATE ON netbox_sync_netboxstate FOR EACH ROW
    WHEN ((OLD.wanted_at, OLD.tried_at, OLD.imported_at, OLD.exported_at, OLD.release, OLD.failures, OLD.retry_at,
           OLD.failing_since, OLD.error)
          IS DISTINCT FROM
          (NEW.wanted_at, NEW.tried_at, NEW.imported_at, NEW.exported_at, NEW.release, NEW.failures, NEW.retry_at,
           NEW.failing_since, NEW.error))
    EXECUTE FUNCTION netbox_is_told_to_pages();
CREATE OR REPLACE TRIGGER line_in_netbox_is_told_to_pages AFTER UPDATE ON netbox_sync_exportedvll FOR EACH ROW
    WHEN (OLD.error IS DISTINCT FROM NEW.error) EXECUTE FUNCTION netbox_is_told_to_pages();
