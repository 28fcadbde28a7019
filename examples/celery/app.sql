-- The team's own database. Oncue only reads it, with the query of tasks.toml.
-- Run again at any time: it starts afresh.

drop table if exists trial;

create table trial (
    id text primary key,
    email text not null,
    ends_on date not null
);

-- Days are counted in UTC, as tasks.toml does.
insert into trial (id, email, ends_on)
select id, email, (now() at time zone 'utc')::date + days
from (values
    ('t-1001', 'ada@example.org', 3),
    ('t-1002', 'grace@example.org', 3),
    ('t-1003', 'kurt@example.bad', 3),       -- the worker rejects it
    ('t-1004', 'edsger@example.org', 20)     -- not concerned, until the trial is shortened
) as row (id, email, days);
