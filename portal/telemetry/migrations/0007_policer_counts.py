"""What policers counted: of each sample, and rolled up. Null where no policer worked, or none can be trusted."""

from django.db import migrations

_COLOURS = ("conform", "exceed", "violate")
_COUNTS = [f"{colour}_{what}" for colour in _COLOURS for what in ("bytes", "packets")]
_SAMPLES = f"""
ALTER TABLE telemetry_sample {", ".join(f"ADD COLUMN {name} bigint" for name in _COUNTS)},
    ADD CONSTRAINT a_policer_counts_all_its_colours CHECK (num_nulls({", ".join(_COUNTS)}) IN (0, 6)),
    ADD CONSTRAINT a_policer_counts_no_less_than_nothing CHECK (least({", ".join(_COUNTS)}) >= 0);
"""
_NO_SAMPLES = f"ALTER TABLE telemetry_sample {', '.join(f'DROP COLUMN {name}' for name in _COUNTS)}"
_SIDES = [f"{side}_{name}" for side in "az" for name in _COUNTS]
# Null costs no space, and most lines are not policed.
_ROLLUP = (
    "ALTER TABLE {table} "
    + ", ".join(f"ADD COLUMN {name} float8" for name in _SIDES)
    + ", ADD COLUMN a_policed_ms integer, ADD COLUMN z_policed_ms integer"
)
_NO_ROLLUP = "ALTER TABLE {table} " + ", ".join(
    f"DROP COLUMN {name}" for name in [*_SIDES, "a_policed_ms", "z_policed_ms"]
)
_TABLES = ("telemetry_five_minutes", "telemetry_hour", "telemetry_day")


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0006_report_triggers")]

    operations = [
        migrations.RunSQL(_SAMPLES, _NO_SAMPLES),
        *(
            migrations.RunSQL(_ROLLUP.format(table=table), _NO_ROLLUP.format(table=table))
            for table in _TABLES
        ),
    ]
