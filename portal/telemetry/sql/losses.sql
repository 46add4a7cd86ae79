-- Losses of routers and their interfaces: samples of the agents, and rollups per 5 minutes, hour and day.

-- ``interface`` is '' for the router itself. A count is null if it is of the other kind, or if VPP has none.
CREATE TABLE telemetry_loss_sample (
    to_at timestamptz NOT NULL,
    router_id bigint NOT NULL,
    boot_id uuid NOT NULL,
    seq bigint NOT NULL,
    from_at timestamptz NOT NULL,
    interface varchar(63) NOT NULL,
    rx_packets bigint,
    tx_packets bigint,
    drops bigint,
    rx_miss bigint,
    rx_errors bigint,
    rx_no_buffer bigint,
    tx_errors bigint,
    no_such_tunnel bigint,
    fragments_sent bigint,
    reassembled bigint,
    reassembly_failed bigint,
    -- At the end of the sample.
    buffers bigint,
    buffers_free bigint,
    simulated boolean NOT NULL,
    CONSTRAINT a_loss_covers_time CHECK (from_at < to_at),
    CONSTRAINT a_loss_is_stored_once PRIMARY KEY (router_id, to_at, interface, boot_id, seq)
) PARTITION BY RANGE (to_at);

-- Counts have fractions, because a sample is spread evenly over its time. ``buffers_free`` is the minimum.
CREATE TABLE telemetry_loss_five_minutes (
    start_at timestamptz NOT NULL,
    router_id bigint NOT NULL,
    covered_ms integer NOT NULL,
    interface varchar(63) NOT NULL,
    rx_packets float8,
    tx_packets float8,
    drops float8,
    rx_miss float8,
    rx_errors float8,
    rx_no_buffer float8,
    tx_errors float8,
    no_such_tunnel float8,
    fragments_sent float8,
    reassembled float8,
    reassembly_failed float8,
    buffers bigint,
    buffers_free bigint,
    simulated boolean NOT NULL,
    CONSTRAINT five_minutes_of_losses_begin_on_their_grid
        CHECK (extract(epoch FROM start_at)::bigint % 300 = 0),
    CONSTRAINT five_minutes_of_losses_count_once PRIMARY KEY (router_id, start_at, interface)
) PARTITION BY RANGE (start_at);
CREATE TABLE telemetry_loss_hour (
    LIKE telemetry_loss_five_minutes,
    CONSTRAINT an_hour_of_losses_begins_on_its_grid CHECK (extract(epoch FROM start_at)::bigint % 3600 = 0),
    CONSTRAINT an_hour_of_losses_counts_once PRIMARY KEY (router_id, start_at, interface)
) PARTITION BY RANGE (start_at);
CREATE TABLE telemetry_loss_day (
    LIKE telemetry_loss_five_minutes,
    CONSTRAINT a_day_of_losses_begins_on_its_grid CHECK (extract(epoch FROM start_at)::bigint % 86400 = 0),
    CONSTRAINT a_day_of_losses_counts_once PRIMARY KEY (router_id, start_at, interface)
) PARTITION BY RANGE (start_at);

CREATE TABLE telemetry_stale_loss_bucket (
    start_at timestamptz NOT NULL,
    router_id bigint NOT NULL,
    step_s integer NOT NULL CHECK (step_s IN (300, 3600, 86400)),
    CONSTRAINT a_bucket_of_losses_is_marked_once PRIMARY KEY (router_id, step_s, start_at)
);
CREATE INDEX telemetry_stale_loss_bucket_due ON telemetry_stale_loss_bucket (step_s, start_at);
