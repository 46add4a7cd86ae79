import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Drop an index: another index of the table begins with the same column.

    Django's own alteration would check the reference of each row again, and lock the table meanwhile.
    """

    atomic = False
    dependencies = [
        ("accounts", "0003_no_second_index"),
        ("inventory", "0014_no_second_index"),
        ("vll", "0012_link_losses"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS vll_tunnelpath_a_router_id_40332e65"),
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS vll_attempt_router_id_49b8b0ec"),
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS vll_endmove_router_id_599546fa"),
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS vll_hold_customer_id_0a7c7d3a"),
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS vll_linetest_vll_id_c7ad09bf"),
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS vll_order_customer_id_1004a3d1"),
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS vll_planresult_order_id_352b73c1"),
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS vll_vll_customer_id_4be04333"),
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS vll_vlltombstone_vll_id_62810c69"),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="attempt",
                    name="router",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="inventory.router",
                    ),
                ),
                migrations.AlterField(
                    model_name="endmove",
                    name="router",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="inventory.router",
                    ),
                ),
                migrations.AlterField(
                    model_name="hold",
                    name="customer",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="holds",
                        to="accounts.customer",
                    ),
                ),
                migrations.AlterField(
                    model_name="linetest",
                    name="vll",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="line_tests",
                        to="vll.vll",
                    ),
                ),
                migrations.AlterField(
                    model_name="order",
                    name="customer",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="orders",
                        to="accounts.customer",
                    ),
                ),
                migrations.AlterField(
                    model_name="planresult",
                    name="order",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="plans",
                        to="vll.order",
                    ),
                ),
                migrations.AlterField(
                    model_name="tunnelpath",
                    name="a_router",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="inventory.router",
                    ),
                ),
                migrations.AlterField(
                    model_name="vll",
                    name="customer",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="vlls",
                        to="accounts.customer",
                    ),
                ),
                migrations.AlterField(
                    model_name="vlltombstone",
                    name="vll",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tombstones",
                        to="vll.vll",
                    ),
                ),
            ],
        ),
    ]
