from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inventory", "0010_plugins_and_linux_cp"),
    ]

    operations = [
        migrations.AddField(
            model_name="router",
            name="dead_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="router",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("dead_since__isnull", True), ("maintenance_since__isnull", False), _connector="OR"
                ),
                name="a_dead_router_is_under_maintenance",
            ),
        ),
    ]
