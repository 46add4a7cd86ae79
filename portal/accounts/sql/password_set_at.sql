-- Record when a password was set, but never the password.

CREATE OR REPLACE FUNCTION a_password_has_its_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.password_set_at := CASE WHEN NEW.password IS DISTINCT FROM OLD.password
                                THEN clock_timestamp() ELSE OLD.password_set_at END;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER a_password_has_its_time BEFORE UPDATE ON accounts_user
    FOR EACH ROW EXECUTE FUNCTION a_password_has_its_time();
