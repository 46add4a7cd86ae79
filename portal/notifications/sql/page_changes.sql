-- "webhooks:<the customer>", or "webhooks:" for the NOC's own webhooks: a webhook or one of its deliveries has
-- changed. PostgreSQL sends the notification with the commit; portal/live/sql has the triggers of lines.

CREATE OR REPLACE FUNCTION notify_pages_of_webhooks(customer bigint) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('longline_live', 'webhooks:' || coalesce(customer::text, ''))
$$;

CREATE OR REPLACE FUNCTION webhook_notifies_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_pages_of_webhooks(NEW.customer_id);
    RETURN NULL;
END $$;
-- Not for the claim, which a worker renews while it delivers.
CREATE OR REPLACE TRIGGER webhook_notifies_pages AFTER UPDATE ON notifications_webhook FOR EACH ROW
    WHEN ((OLD.url, OLD.description, OLD.types, OLD.secret_set_at, OLD.previous_until, OLD.disabled_at, OLD.failing_since)
          IS DISTINCT FROM
          (NEW.url, NEW.description, NEW.types, NEW.secret_set_at, NEW.previous_until, NEW.disabled_at, NEW.failing_since))
    EXECUTE FUNCTION webhook_notifies_pages();

CREATE OR REPLACE FUNCTION delivery_notifies_pages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_pages_of_webhooks(customer_id) FROM notifications_webhook WHERE id = NEW.webhook_id;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER new_delivery_notifies_pages AFTER INSERT ON notifications_delivery
    FOR EACH ROW EXECUTE FUNCTION delivery_notifies_pages();
CREATE OR REPLACE TRIGGER delivery_notifies_pages AFTER UPDATE ON notifications_delivery FOR EACH ROW
    WHEN ((OLD.state, OLD.tries, OLD.next_try_at, OLD.answer)
          IS DISTINCT FROM (NEW.state, NEW.tries, NEW.next_try_at, NEW.answer))
    EXECUTE FUNCTION delivery_notifies_pages();
