-- Update oper status intervals for all events of a statement at once: the lines of a router change together.

-- An event about the oper status contains the new status. For an event about the life cycle, the line has it:
-- only the oper status of a line in service that is not suspended counts. A statement has one event per line.
CREATE OR REPLACE FUNCTION oper_intervals_follow_the_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH became AS (
        SELECT DISTINCT ON (happened.vll_id) happened.vll_id, happened.at,
            CASE WHEN happened.kind LIKE 'vll.op-%' AND line.id IS NOT NULL THEN substr(happened.kind, 5)
                 ELSE line.oper_status END AS status
        FROM happened LEFT JOIN vll_vll line ON line.id = happened.vll_id AND line.lifecycle = 'active'
        WHERE happened.vll_id IS NOT NULL AND happened.kind IN (
            'vll.op-up', 'vll.op-down', 'vll.op-unknown',
            'vll.active', 'vll.suspended', 'vll.pendingTerminate', 'vll.terminated', 'vll.cancelled')
        ORDER BY happened.vll_id, happened.id
    ), closed AS (
        UPDATE telemetry_operinterval held SET ended_at = greatest(became.at, held.began_at)
        FROM became
        WHERE held.vll_id = became.vll_id AND held.ended_at IS NULL
            AND held.status IS DISTINCT FROM became.status
        RETURNING held.vll_id, held.ended_at
    )
    INSERT INTO telemetry_operinterval (vll_id, status, began_at)
    SELECT became.vll_id, became.status, coalesce(closed.ended_at, became.at)
    FROM became LEFT JOIN closed ON closed.vll_id = became.vll_id
    WHERE became.status IS NOT NULL
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER oper_intervals_follow_the_events AFTER INSERT ON events_event
    REFERENCING NEW TABLE AS happened
    FOR EACH STATEMENT EXECUTE FUNCTION oper_intervals_follow_the_events();
