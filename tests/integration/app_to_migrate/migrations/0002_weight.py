from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("app_to_migrate", "0001_box")]

    operations = [
        migrations.AddField("box", "weight_g", models.PositiveIntegerField(db_default=0)),
    ]
