import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("inventory", "0004_interface_uses_and_retirement")]

    operations = [
        migrations.AddField("router", "maintenance_since", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("router", "held_since", models.DateTimeField(blank=True, null=True)),
        migrations.CreateModel(
            name="RouterEnrolment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("offered_by", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "router",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="enrolments",
                        to="inventory.router",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="routerenrolment",
            constraint=models.UniqueConstraint(
                fields=("router",), condition=Q(used_at__isnull=True), name="a_router_has_one_open_enrolment"
            ),
        ),
        migrations.AddConstraint(
            model_name="routerenrolment",
            constraint=models.CheckConstraint(
                condition=Q(used_at__isnull=True) | Q(used_at__lt=F("expires_at")),
                name="an_enrolment_is_used_before_it_expires",
            ),
        ),
        migrations.AddField(
            "routercertificate",
            "enrolment",
            models.OneToOneField(
                null=True, on_delete=django.db.models.deletion.PROTECT, to="inventory.routerenrolment"
            ),
        ),
    ]
