-- The percentiles of a frozen month stay as they are.

CREATE OR REPLACE FUNCTION a_frozen_percentile_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the percentiles of a frozen month never change'
        USING ERRCODE = 'check_violation', CONSTRAINT = 'a_frozen_percentile_stays';
END $$;
CREATE OR REPLACE TRIGGER a_frozen_percentile_stays BEFORE UPDATE OR DELETE ON telemetry_monthlypercentile
    FOR EACH ROW EXECUTE FUNCTION a_frozen_percentile_stays();
