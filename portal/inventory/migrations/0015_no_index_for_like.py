from django.db import migrations


class Migration(migrations.Migration):
    """Drop the index for LIKE that Django creates for each unique or indexed text. Equality uses the other
    index.
    """

    atomic = False
    dependencies = [
        ("inventory", "0014_no_second_index"),
    ]

    operations = [
        migrations.RunSQL(
            [
                "DROP INDEX CONCURRENTLY IF EXISTS inventory_router_name_d39de2f1_like",
                "DROP INDEX CONCURRENTLY IF EXISTS inventory_routercertificate_fingerprint_659512e0_like",
                "DROP INDEX CONCURRENTLY IF EXISTS inventory_routercertificate_serial_784fd2a2_like",
                "DROP INDEX CONCURRENTLY IF EXISTS inventory_site_name_cdd53453_like",
            ]
        ),
    ]
