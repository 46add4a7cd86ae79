from typing import ClassVar

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # The table stays writable meanwhile.
    atomic = False

    dependencies: ClassVar = [("vll", "0024_marks_of_resent_messages_in_redis")]
    operations: ClassVar = [
        AddIndexConcurrently(
            model_name="vllend",
            index=models.Index(
                fields=["rebuild_requested_at"],
                condition=models.Q(rebuild_requested_at__isnull=False),
                name="vll_end_rebuild_requested",
            ),
        ),
    ]
