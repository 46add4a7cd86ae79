-- Rollups: counts of a line per 5 minutes, hour and day, and the list of those that have to be counted again.

-- A row contains both ends: this halves the keys, and the ends are compared with each other. Bytes and packets
-- have fractions, because a sample is spread evenly over its time. Null means that an end has no sample.
CREATE TABLE telemetry_five_minutes (
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
    -- Null needs no space, and most lines are not policed.
    a_conform_bytes float8,
    a_conform_packets float8,
    a_exceed_bytes float8,
    a_exceed_packets float8,
    a_violate_bytes float8,
    a_violate_packets float8,
    z_conform_bytes float8,
    z_conform_packets float8,
    z_exceed_bytes float8,
    z_exceed_packets float8,
    z_violate_bytes float8,
    z_violate_packets float8,
    a_policed_ms integer,
    z_policed_ms integer,
    CONSTRAINT five_minutes_begins_on_its_grid CHECK (extract(epoch FROM start_at)::bigint % 300 = 0),
    CONSTRAINT five_minutes_counts_once PRIMARY KEY (vll_id, start_at)
) PARTITION BY RANGE (start_at);
CREATE TABLE telemetry_hour (
    LIKE telemetry_five_minutes,
    CONSTRAINT an_hour_begins_on_its_grid CHECK (extract(epoch FROM start_at)::bigint % 3600 = 0),
    CONSTRAINT an_hour_counts_once PRIMARY KEY (vll_id, start_at)
) PARTITION BY RANGE (start_at);
CREATE TABLE telemetry_day (
    LIKE telemetry_five_minutes,
    CONSTRAINT a_day_begins_on_its_grid CHECK (extract(epoch FROM start_at)::bigint % 86400 = 0),
    CONSTRAINT a_day_counts_once PRIMARY KEY (vll_id, start_at)
) PARTITION BY RANGE (start_at);

-- ``side`` is '' for hours and days. It is part of the key so that the routers of both ends do not wait for each
-- other when they report.
CREATE TABLE telemetry_stale_bucket (
    start_at timestamptz NOT NULL,
    vll_id uuid NOT NULL,
    step_s integer NOT NULL CHECK (step_s IN (300, 3600, 86400)),
    side varchar(1) NOT NULL CHECK (side IN ('a', 'z', '')),
    CONSTRAINT a_bucket_is_marked_once PRIMARY KEY (vll_id, step_s, start_at, side)
);
CREATE INDEX telemetry_stale_bucket_due ON telemetry_stale_bucket (step_s, start_at);
