-- Mark the ends with which the next report is compared even if it is unchanged. Triggers do it for all writers.

CREATE OR REPLACE FUNCTION end_changed_since_report() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_since_report := true;
    RETURN NEW;
END $$;
-- The statement that compared the end writes the column itself.
CREATE OR REPLACE TRIGGER end_changed_since_report BEFORE UPDATE ON vll_vllend FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.* AND OLD.changed_since_report = NEW.changed_since_report)
    EXECUTE FUNCTION end_changed_since_report();

CREATE OR REPLACE FUNCTION line_changed_since_report() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE vll_vllend SET changed_since_report = true WHERE vll_id = NEW.id AND NOT changed_since_report;
    RETURN NULL;
END $$;
-- Changes that reports of its routers caused do not count. Changes caused by a router's silence are marked at
-- the router (found_silent).
CREATE OR REPLACE TRIGGER line_changed_since_report AFTER UPDATE ON vll_vll FOR EACH ROW
    WHEN ((OLD.revision, OLD.lifecycle) IS DISTINCT FROM (NEW.revision, NEW.lifecycle))
    EXECUTE FUNCTION line_changed_since_report();
