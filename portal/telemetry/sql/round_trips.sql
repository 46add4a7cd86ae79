-- Round trips between routers per minute, 5 minutes, hour and day. The portal itself measures them, so that no
-- measurement comes late or twice: each is added to all four tables at once.

CREATE TABLE telemetry_round_trips (
    start_at timestamptz NOT NULL,
    path_id uuid NOT NULL,
    sent integer NOT NULL,
    received integer NOT NULL,
    -- Null if no packet came back.
    min_us integer,
    sum_us bigint,
    max_us integer,
    simulated boolean NOT NULL,
    CONSTRAINT round_trips_begin_on_their_grid CHECK (extract(epoch FROM start_at)::bigint % 60 = 0),
    CONSTRAINT no_more_comes_back_than_was_sent CHECK (received BETWEEN 0 AND sent),
    CONSTRAINT what_came_back_has_times CHECK (num_nulls(min_us, sum_us, max_us) = CASE received WHEN 0 THEN 3 ELSE 0 END),
    CONSTRAINT round_trips_count_once PRIMARY KEY (path_id, start_at)
) PARTITION BY RANGE (start_at);
CREATE TABLE telemetry_round_trips_five_minutes (
    LIKE telemetry_round_trips INCLUDING CONSTRAINTS,
    CONSTRAINT five_minutes_of_round_trips_begin_on_their_grid CHECK (extract(epoch FROM start_at)::bigint % 300 = 0),
    CONSTRAINT five_minutes_of_round_trips_count_once PRIMARY KEY (path_id, start_at)
) PARTITION BY RANGE (start_at);
CREATE TABLE telemetry_round_trips_hour (
    LIKE telemetry_round_trips INCLUDING CONSTRAINTS,
    CONSTRAINT an_hour_of_round_trips_begins_on_its_grid CHECK (extract(epoch FROM start_at)::bigint % 3600 = 0),
    CONSTRAINT an_hour_of_round_trips_counts_once PRIMARY KEY (path_id, start_at)
) PARTITION BY RANGE (start_at);
CREATE TABLE telemetry_round_trips_day (
    LIKE telemetry_round_trips INCLUDING CONSTRAINTS,
    CONSTRAINT a_day_of_round_trips_begins_on_its_grid CHECK (extract(epoch FROM start_at)::bigint % 86400 = 0),
    CONSTRAINT a_day_of_round_trips_counts_once PRIMARY KEY (path_id, start_at)
) PARTITION BY RANGE (start_at);
