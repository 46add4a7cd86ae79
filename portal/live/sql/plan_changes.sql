-- Notify open pages, as page_changes.sql does, of plans for orders that wait for approval.
CREATE OR REPLACE FUNCTION plan_is_told_to_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell_pages_of_line(vll_id, customer_id) FROM vll_order WHERE id = NEW.order_id;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER plan_is_told_to_pages AFTER INSERT OR UPDATE ON vll_planresult
    FOR EACH ROW EXECUTE FUNCTION plan_is_told_to_pages();
