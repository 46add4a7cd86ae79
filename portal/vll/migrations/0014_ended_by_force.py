"""Orders that a NOC admin ended; and ends of lines that are over may be left to a dead router as tombstones."""

from django.db import migrations, models

_FUNCTION = """
CREATE OR REPLACE FUNCTION an_end_is_no_tombstone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM vll_vlltombstone t
        JOIN vll_vllend e ON e.vll_id = t.vll_id AND e.side = t.side
        JOIN inventory_port p ON p.id = e.port_id
        {lines}
        WHERE t.vll_id = NEW.vll_id AND t.side = NEW.side AND t.router_id = p.router_id {living}
    ) THEN
        RAISE EXCEPTION 'end % of VLL % stands on a router that is to remove it', NEW.side, NEW.vll_id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'an_end_is_no_tombstone';
    END IF;
    RETURN NULL;
END $$;
"""
FORWARD = _FUNCTION.format(
    lines="JOIN vll_vll v ON v.id = t.vll_id",
    # An agent is told of the ends of these by tombstones alone.
    living="AND v.lifecycle NOT IN ('terminated', 'cancelled')",
)
BACKWARD = _FUNCTION.format(lines="", living="")


class Migration(migrations.Migration):
    dependencies = [
        ("vll", "0013_end_moves"),
    ]

    operations = [
        migrations.AddField(
            model_name="order",
            name="forced",
            field=models.JSONField(null=True),
        ),
        migrations.AddConstraint(
            model_name="order",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("forced__isnull", True), ("state__in", ["failed", "cancelled"]), _connector="OR"
                ),
                name="only_an_order_that_ended_ill_was_forced",
            ),
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
