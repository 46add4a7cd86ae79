from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("vll", "0016_read_by_index"),
    ]

    operations = [
        migrations.AddField(
            model_name="order",
            name="request_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
    ]
