"""When a password was set is on record; what it is, never."""

from django.db import migrations, models

FORWARD = """
CREATE FUNCTION a_password_has_its_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.password_set_at := CASE WHEN NEW.password IS DISTINCT FROM OLD.password
                                THEN clock_timestamp() ELSE OLD.password_set_at END;
    RETURN NEW;
END $$;
CREATE TRIGGER a_password_has_its_time BEFORE UPDATE ON accounts_user
    FOR EACH ROW EXECUTE FUNCTION a_password_has_its_time();
"""
BACKWARD = """
DROP TRIGGER a_password_has_its_time ON accounts_user;
DROP FUNCTION a_password_has_its_time();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_closed_with"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="password_set_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
