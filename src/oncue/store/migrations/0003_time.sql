-- Time, exactly: jitter and spread, bounded schedules, pauses that end, calendars, editions of the zone data, backfills.

alter table tasks add column resume_at {time};
create index tasks_resuming on tasks (resume_at) where resume_at is not null;

alter table schedules add column since {time};
alter table schedules add column runs_left bigint;
alter table schedules add column zone_data text;
create index schedules_calendars on schedules (task_id) where timing like '%"calendars":[{%';

alter table runs add column starts_at {time};
alter table runs add column spread_until {time};
alter table runs add column backfill_id bigint;
create index runs_backfill on runs (backfill_id, id) where backfill_id is not null;
create index runs_held on runs (task_id, id) where state = 'held';

alter table components add column zone_data text;

create index audit_verb on audit (verb, id);

create table calendars (
    name text primary key,
    definition text not null,
    changed_at {time} not null
);

create table backfills (
    id {id},
    uuid {uuid} not null,
    task_id bigint not null,
    task_version integer not null,
    first_due_at {time} not null,
    last_due_at {time} not null,
    total bigint not null,
    actor text not null,
    created_at {time} not null
);
create unique index backfills_uuid on backfills (uuid);
