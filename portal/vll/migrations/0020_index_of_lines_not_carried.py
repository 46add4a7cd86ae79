from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # The table stays writable meanwhile.
    atomic = False

    dependencies = [
        ("vll", "0019_lines_not_carried"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="vll",
            index=models.Index(
                condition=models.Q(("not_carried_since__isnull", False)),
                fields=["customer"],
                name="vll_not_carried",
            ),
        ),
    ]
