-- Which ends a report is to be compared with although it says nothing new: no writer can forget to mark them.

CREATE OR REPLACE FUNCTION end_changed_since_report() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_since_report := true;
    RETURN NEW;
END $$;
-- Who compared writes the column itself.
CREATE OR REPLACE TRIGGER end_changed_since_report BEFORE UPDATE ON vll_vllend FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.* AND OLD.changed_since_report = NEW.changed_since_report)
    EXECUTE FUNCTION end_changed_since_report();

CREATE OR REPLACE FUNCTION line_changed_since_report() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE vll_vllend SET changed_since_report = true WHERE vll_id = NEW.id AND NOT changed_since_report;
    RETURN NULL;
END $$;
-- What its routers' reports made of a line is no news to them. What a silence made of it is known of the
-- router (found_silent).
CREATE OR REPLACE TRIGGER line_changed_since_report AFTER UPDATE ON vll_vll FOR EACH ROW
    WHEN ((OLD.revision, OLD.lifecycle) IS DISTINCT FROM (NEW.revision, NEW.lifecycle))
    EXECUTE FUNCTION line_changed_since_report();
