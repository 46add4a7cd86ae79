from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Forget the outbox. The previous release still writes and reads the table; the next release drops it."""

    dependencies: ClassVar = [("events", "0003_rename_fields")]
    operations: ClassVar = [
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel("Outbox")])
    ]
