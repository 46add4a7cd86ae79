from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("depot", "0002_weight")]

    operations = [
        AddIndexConcurrently("box", models.Index(fields=["name"], name="depot_box_by_name")),
    ]
