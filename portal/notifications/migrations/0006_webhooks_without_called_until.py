from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Forget a column that only the previous release uses. The next release drops it."""

    dependencies: ClassVar = [("notifications", "0005_rename_fields")]
    operations: ClassVar = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField("webhook", "called_until")]
        )
    ]
