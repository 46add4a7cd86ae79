from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    """Forget columns that only the previous release uses. The next release drops them.

    Add a column for requested rebuilds.
    """

    dependencies: ClassVar = [("vll", "0023_activation_tests")]
    operations: ClassVar = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveField("routerconvergence", "resent_at"),
                migrations.RemoveField("routerconvergence", "reconcile_sent_at"),
                migrations.RemoveField("activationtest", "resent_at"),
            ]
        ),
        migrations.AddField("vllend", "rebuild_requested_at", models.DateTimeField(null=True)),
    ]
