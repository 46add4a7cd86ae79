"""The samples' table, partitioned by day, so that retention is a dropped partition."""

from django.db import migrations

FORWARD = """
CREATE TABLE telemetry_sample (
    to_at timestamptz NOT NULL,
    vll_id uuid NOT NULL,
    side varchar(1) NOT NULL CHECK (side IN ('a', 'z')),
    boot_id uuid NOT NULL,
    seq bigint NOT NULL,
    from_at timestamptz NOT NULL,
    router_id bigint NOT NULL,
    in_bytes bigint NOT NULL CHECK (in_bytes >= 0),
    in_packets bigint NOT NULL CHECK (in_packets >= 0),
    out_bytes bigint NOT NULL CHECK (out_bytes >= 0),
    out_packets bigint NOT NULL CHECK (out_packets >= 0),
    simulated boolean NOT NULL,
    CONSTRAINT a_sample_covers_time CHECK (from_at < to_at),
    CONSTRAINT a_sample_is_stored_once PRIMARY KEY (vll_id, side, to_at, boot_id, seq)
) PARTITION BY RANGE (to_at);
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, "DROP TABLE telemetry_sample")]
