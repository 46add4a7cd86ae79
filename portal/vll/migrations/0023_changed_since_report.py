"""Which ends a report is to be compared with although it says nothing new: marked by triggers, so that no
writer of today or tomorrow can forget it.
"""

from django.db import migrations, models
from django.db.models import Q

FORWARD = """
-- Nothing is compared with what is over.
UPDATE vll_vllend SET changed_since_report = false
FROM vll_vll WHERE vll_vll.id = vll_vllend.vll_id AND vll_vll.lifecycle IN ('terminated', 'cancelled');

CREATE FUNCTION end_changed_since_report() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_since_report := true;
    RETURN NEW;
END $$;
-- Who compared writes the column itself.
CREATE TRIGGER end_changed_since_report BEFORE UPDATE ON vll_vllend FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.* AND OLD.changed_since_report = NEW.changed_since_report)
    EXECUTE FUNCTION end_changed_since_report();

CREATE FUNCTION line_changed_since_report() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE vll_vllend SET changed_since_report = true WHERE vll_id = NEW.id AND NOT changed_since_report;
    RETURN NULL;
END $$;
CREATE TRIGGER line_changed_since_report AFTER UPDATE ON vll_vll FOR EACH ROW
    WHEN ((OLD.revision, OLD.lifecycle, OLD.oper_status, OLD.in_sync)
          IS DISTINCT FROM (NEW.revision, NEW.lifecycle, NEW.oper_status, NEW.in_sync))
    EXECUTE FUNCTION line_changed_since_report();
"""
BACKWARD = """
DROP TRIGGER line_changed_since_report ON vll_vll;
DROP FUNCTION line_changed_since_report();
DROP TRIGGER end_changed_since_report ON vll_vllend;
DROP FUNCTION end_changed_since_report();
"""


class Migration(migrations.Migration):
    dependencies = [("vll", "0022_name_tunnels_of_tombstones")]

    operations = [
        migrations.AddField(
            model_name="vllend",
            name="changed_since_report",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
        migrations.AddIndex(
            model_name="vllend",
            index=models.Index(
                condition=Q(changed_since_report=True), fields=["port"], name="vll_end_changed_since_report"
            ),
        ),
    ]
