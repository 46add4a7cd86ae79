from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("app_to_migrate", "0002_weight")]

    operations = [
        AddIndexConcurrently("box", models.Index(fields=["name"], name="app_to_migrate_box_by_name")),
    ]
