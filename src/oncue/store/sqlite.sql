-- name: read_clock
-- The host's time, never earlier than a sample that was given before.
insert into clock_samples (id, sampled_at)
values (1, :host)
on conflict (id) do update set sampled_at = max(clock_samples.sampled_at, excluded.sampled_at)
returning sampled_at
