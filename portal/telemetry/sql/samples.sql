-- The table of samples is partitioned by day: retention drops a partition.

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
    -- Null if the end was not policed, or if the counts of its policer are not reliable.
    conform_bytes bigint,
    conform_packets bigint,
    exceed_bytes bigint,
    exceed_packets bigint,
    violate_bytes bigint,
    violate_packets bigint,
    CONSTRAINT a_sample_covers_time CHECK (from_at < to_at),
    CONSTRAINT a_policer_counts_all_its_colours CHECK (
        num_nulls(conform_bytes, conform_packets, exceed_bytes, exceed_packets,
                  violate_bytes, violate_packets) IN (0, 6)),
    CONSTRAINT a_policer_counts_no_less_than_nothing CHECK (
        least(conform_bytes, conform_packets, exceed_bytes, exceed_packets,
              violate_bytes, violate_packets) >= 0),
    CONSTRAINT a_sample_is_stored_once PRIMARY KEY (vll_id, side, to_at, boot_id, seq)
) PARTITION BY RANGE (to_at);
