from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_people_and_tokens")]

    operations = [
        migrations.AddField("customer", "retired_at", models.DateTimeField(blank=True, null=True)),
    ]
