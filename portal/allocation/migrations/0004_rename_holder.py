from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename a field in Django's state. The column keeps its name, because the previous release reads it."""

    dependencies = [
        ("allocation", "0003_no_second_index"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint(model_name="vnilease", name="a_vll_holds_one_vni"),
                migrations.RemoveConstraint(model_name="grekeylease", name="a_vll_holds_one_gre_key"),
                migrations.RemoveConstraint(model_name="grepairlease", name="a_vll_holds_one_gre_pair"),
                migrations.RemoveConstraint(model_name="portvlanlease", name="a_vll_end_holds_one_vlan"),
                migrations.RemoveConstraint(model_name="bandwidthbooking", name="a_vll_end_books_once"),
                migrations.RemoveConstraint(model_name="corebooking", name="a_vll_end_books_cores_once"),
                migrations.AlterField(
                    model_name="vnilease",
                    name="holder",
                    field=models.UUIDField(db_column="holder", db_index=True),
                ),
                migrations.RenameField(model_name="vnilease", old_name="holder", new_name="owner"),
                migrations.AlterField(
                    model_name="grekeylease",
                    name="holder",
                    field=models.UUIDField(db_column="holder", db_index=True),
                ),
                migrations.RenameField(model_name="grekeylease", old_name="holder", new_name="owner"),
                migrations.AlterField(
                    model_name="grepairlease",
                    name="holder",
                    field=models.UUIDField(db_column="holder", db_index=True),
                ),
                migrations.RenameField(model_name="grepairlease", old_name="holder", new_name="owner"),
                migrations.AlterField(
                    model_name="portvlanlease",
                    name="holder",
                    field=models.UUIDField(db_column="holder"),
                ),
                migrations.RenameField(model_name="portvlanlease", old_name="holder", new_name="owner"),
                migrations.AlterField(
                    model_name="bandwidthbooking",
                    name="holder",
                    field=models.UUIDField(db_column="holder"),
                ),
                migrations.RenameField(model_name="bandwidthbooking", old_name="holder", new_name="owner"),
                migrations.AlterField(
                    model_name="corebooking",
                    name="holder",
                    field=models.UUIDField(db_column="holder"),
                ),
                migrations.RenameField(model_name="corebooking", old_name="holder", new_name="owner"),
                migrations.AddConstraint(
                    model_name="vnilease",
                    constraint=models.UniqueConstraint(
                        fields=("owner",),
                        condition=models.Q(("released_at__isnull", True)),
                        name="a_vll_holds_one_vni",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="grekeylease",
                    constraint=models.UniqueConstraint(
                        fields=("owner",),
                        condition=models.Q(("released_at__isnull", True)),
                        name="a_vll_holds_one_gre_key",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="grepairlease",
                    constraint=models.UniqueConstraint(
                        fields=("owner",),
                        condition=models.Q(("released_at__isnull", True)),
                        name="a_vll_holds_one_gre_pair",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="portvlanlease",
                    constraint=models.UniqueConstraint(
                        fields=("owner", "side"), name="a_vll_end_holds_one_vlan"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="bandwidthbooking",
                    constraint=models.UniqueConstraint(fields=("owner", "side"), name="a_vll_end_books_once"),
                ),
                migrations.AddConstraint(
                    model_name="corebooking",
                    constraint=models.UniqueConstraint(
                        fields=("owner", "side"), name="a_vll_end_books_cores_once"
                    ),
                ),
            ],
        ),
    ]
