import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Drop an index, because another index of the table begins with the same column.

    Django's own alteration would check each row's reference again and lock the table meanwhile.
    """

    atomic = False
    dependencies = [
        ("inventory", "0013_underlay_table_and_link_losses"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS inventory_routersilence_router_id_76b0bcc8"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS inventory_observedinterface_router_id_cfc5cc75"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS inventory_observedload_link_id_db5b5f61"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS inventory_tunneladdress_router_id_98b47f41"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS inventory_observedroute_router_id_c0bd542f"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS inventory_observedpath_router_id_5f4258dc"
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS inventory_observedcircuit_router_id_b507517f"
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="observedcircuit",
                    name="router",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="observed_circuits",
                        to="inventory.router",
                    ),
                ),
                migrations.AlterField(
                    model_name="observedinterface",
                    name="router",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="observed_interfaces",
                        to="inventory.router",
                    ),
                ),
                migrations.AlterField(
                    model_name="observedload",
                    name="link",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="loads",
                        to="inventory.backbonelink",
                    ),
                ),
                migrations.AlterField(
                    model_name="observedpath",
                    name="router",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="observed_paths",
                        to="inventory.router",
                    ),
                ),
                migrations.AlterField(
                    model_name="observedroute",
                    name="router",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="observed_routes",
                        to="inventory.router",
                    ),
                ),
                migrations.AlterField(
                    model_name="routersilence",
                    name="router",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="silences",
                        to="inventory.router",
                    ),
                ),
                migrations.AlterField(
                    model_name="tunneladdress",
                    name="router",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tunnel_addresses",
                        to="inventory.router",
                    ),
                ),
            ],
        ),
    ]
