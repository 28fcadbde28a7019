-- name: read_clock
-- The one statement that asks the database for the time.
select clock_timestamp() as sampled_at, cast(:host as timestamptz) as host
