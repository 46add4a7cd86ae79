"""What its routers' reports made of a line is no news to them: only another revision or life cycle is.

What a silence made of it is known of the router (found_silent).
"""

from django.db import migrations

_TRIGGER = """
DROP TRIGGER line_changed_since_report ON vll_vll;
CREATE TRIGGER line_changed_since_report AFTER UPDATE ON vll_vll FOR EACH ROW
    WHEN (({old}) IS DISTINCT FROM ({new}))
    EXECUTE FUNCTION line_changed_since_report();
"""


def _trigger(*columns: str) -> str:
    old, new = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
    return _TRIGGER.format(old=old, new=new)


class Migration(migrations.Migration):
    dependencies = [("vll", "0025_attempts_counted"), ("inventory", "0020_found_silent")]

    operations = [
        migrations.RunSQL(
            _trigger("revision", "lifecycle"), _trigger("revision", "lifecycle", "oper_status", "in_sync")
        )
    ]
