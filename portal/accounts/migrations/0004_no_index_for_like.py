from django.db import migrations


class Migration(migrations.Migration):
    """Drop the index for LIKE that Django creates for each unique or indexed text. Equality uses the other
    index.
    """

    atomic = False
    dependencies = [
        ("account", "0009_emailaddress_unique_primary_email"),
        ("accounts", "0003_no_second_index"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL(
            [
                "DROP INDEX CONCURRENTLY IF EXISTS account_emailaddress_email_03be32b2_like",
                "DROP INDEX CONCURRENTLY IF EXISTS account_emailconfirmation_key_f43612bd_like",
                "DROP INDEX CONCURRENTLY IF EXISTS accounts_apitoken_prefix_8b81ac32_like",
                "DROP INDEX CONCURRENTLY IF EXISTS accounts_customer_name_da939e5a_like",
                "DROP INDEX CONCURRENTLY IF EXISTS accounts_user_username_6088629e_like",
                "DROP INDEX CONCURRENTLY IF EXISTS auth_group_name_a6ea08ec_like",
                "DROP INDEX CONCURRENTLY IF EXISTS django_session_session_key_c0390e0f_like",
            ]
        ),
    ]
