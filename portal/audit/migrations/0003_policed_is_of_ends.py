"""Whether a line is policed is what its routers report, which the audit does not record."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_router_care")]

    operations = [migrations.RemoveField(model_name="vllevent", name="policed")]
