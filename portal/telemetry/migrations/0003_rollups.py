"""Rollups: what a VLL counted per 5 minutes, hour and day, and which of these are to be counted anew."""

from django.db import migrations

# Both ends in one row: half the keys, and the ends are compared with each other. Bytes and packets have
# fractions, because a sample counts evenly over its time. Null where an end counted nothing at all.
_TABLE = """
CREATE TABLE {table} (
    start_at timestamptz NOT NULL,
    vll_id uuid NOT NULL,
    a_in_bytes float8,
    a_in_packets float8,
    a_out_bytes float8,
    a_out_packets float8,
    z_in_bytes float8,
    z_in_packets float8,
    z_out_bytes float8,
    z_out_packets float8,
    a_covered_ms integer NOT NULL,
    z_covered_ms integer NOT NULL,
    simulated boolean NOT NULL,
    CONSTRAINT {name}_begins_on_its_grid CHECK (extract(epoch FROM start_at)::bigint % {step_s} = 0),
    CONSTRAINT {name}_counts_once PRIMARY KEY (vll_id, start_at)
) PARTITION BY RANGE (start_at);
"""
_TABLES = [
    ("telemetry_five_minutes", "five_minutes", 300),
    ("telemetry_hour", "an_hour", 3600),
    ("telemetry_day", "a_day", 86400),
]
# ``side`` is '' for hours and days. It is in the key so that the routers of both ends do not wait for each
# other when they report.
_MARKS = """
CREATE TABLE telemetry_stale_bucket (
    start_at timestamptz NOT NULL,
    vll_id uuid NOT NULL,
    step_s integer NOT NULL CHECK (step_s IN (300, 3600, 86400)),
    side varchar(1) NOT NULL CHECK (side IN ('a', 'z', '')),
    CONSTRAINT a_bucket_is_marked_once PRIMARY KEY (vll_id, step_s, start_at, side)
);
CREATE INDEX telemetry_stale_bucket_due ON telemetry_stale_bucket (step_s, start_at);
-- Samples from before there were rollups.
INSERT INTO telemetry_stale_bucket (vll_id, step_s, side, start_at)
SELECT DISTINCT vll_id, 300, side, start_at
FROM telemetry_sample,
     generate_series(date_bin('5 minutes', from_at, 'epoch'), to_at - interval '1 microsecond', '5 minutes')
         AS start_at;
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0002_sample_table")]

    operations = [
        *(
            migrations.RunSQL(_TABLE.format(table=table, name=name, step_s=step_s), f"DROP TABLE {table}")
            for table, name, step_s in _TABLES
        ),
        migrations.RunSQL(_MARKS, "DROP TABLE telemetry_stale_bucket"),
    ]
