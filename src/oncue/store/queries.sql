-- Every statement on Oncue's tables, named, once for all databases. The words in braces are explained in sql.py.

-- name: reset_clock
-- One row by primary key.
update clock_samples
set sampled_at = :host

-- === tasks ===

-- name: begin_change
-- One row by primary key. Tasks are changed by one transaction after another, and the count tells the ingest of each.
update task_changes
set count = count + 1
where id = 1

-- name: read_changes
-- One row by primary key.
select count
from task_changes
where id = 1

-- name: list_tasks
-- All tasks: for an apply, for listings and for the ingest's cache.
select {columns of task}
from tasks
join definitions on definitions.task_id = tasks.id and definitions.version = tasks.version
where {tasks.state in task.remove}
order by tasks.name

-- name: list_task_names
-- Served by tasks_name.
select name
from tasks
where {state in task.remove}
order by name
limit :limit

-- name: read_task
-- Served by tasks_name.
select {columns of task}
from tasks
join definitions on definitions.task_id = tasks.id and definitions.version = tasks.version
where tasks.name = :name
  and {tasks.state in task.remove}

-- name: read_task_at_version
-- Served by the primary keys.
select tasks.id, tasks.uuid, definitions.version, tasks.state, tasks.reason, tasks.created_at, tasks.changed_at,
    tasks.resume_at, definitions.definition
from tasks
join definitions on definitions.task_id = tasks.id
where tasks.id = :task_id
  and definitions.version = :version

-- name: read_task_identity
-- Served by the primary key.
select uuid, version
from tasks
where id = :id

-- name: insert_task
insert into tasks (uuid, name, version, state, created_at, changed_at)
values (:uuid, :name, 1, {first:task}, :now, :now)
returning id

-- name: change_task
-- Served by the primary key.
update tasks
set name = :name, version = :version, changed_at = :now
where id = :id

-- name: pause_task
-- Served by the primary key.
update tasks
set state = {to:task.active.pause}, reason = :reason, resume_at = :resume_at, changed_at = :now
where id = :id
  and {state in task.pause|extend}

-- name: resume_task
-- Served by the primary key.
update tasks
set state = {to:task.paused.resume}, reason = null, resume_at = null, changed_at = :now
where id = :id
  and {state in task.resume}

-- name: remove_task
-- Served by the primary key.
update tasks
set state = {to:task.active.remove}, reason = :reason, resume_at = null, changed_at = :now
where id = :id
  and {state in task.remove}

-- name: insert_definition
insert into definitions (task_id, version, definition, created_at)
values (:task_id, :version, :definition, :now)

-- name: list_calendars
-- All calendars: a handful.
select name, definition, changed_at
from calendars
order by name

-- name: write_calendar
-- Served by the primary key.
insert into calendars (name, definition, changed_at)
values (:name, :definition, :now)
on conflict (name) do update set definition = excluded.definition, changed_at = excluded.changed_at

-- name: delete_calendar
-- Served by the primary key.
delete from calendars
where name = :name

-- name: list_calendar_users
-- Served by schedules_calendars: the first condition is that index's own.
select schedules.task_id, tasks.name
from schedules
join tasks on tasks.id = schedules.task_id
where schedules.timing like '%"calendars":[{%'
  and schedules.timing like :pattern escape '!'
order by schedules.task_id
limit :limit

-- name: list_calendar_users_to_come
-- Served by schedules_calendars, as list_calendar_users: those that can still fire.
select tasks.name
from schedules
join tasks on tasks.id = schedules.task_id
where schedules.timing like '%"calendars":[{%'
  and schedules.timing like :pattern escape '!'
  and {schedules.state in schedule.pause|resume}
order by schedules.task_id
limit :limit

-- name: list_ended_pauses
-- Served by tasks_resuming.
select id, name, reason, changed_at, resume_at
from tasks
where resume_at <= :until
order by resume_at
limit :limit

-- name: insert_audit
insert into audit (happened_at, actor, verb, subject, detail)
values (:now, :actor, :verb, :subject, :detail)

-- name: list_audit
-- Served by audit_verb or the primary key: the latest of a verb that is common are near the end.
select happened_at, actor, verb, subject, detail
from audit
where verb = :verb
order by id desc
limit :limit

-- === schedules ===

-- name: lock_schedule
-- Served by the primary key.
select {columns of schedule}
from schedules
where task_id = :task_id
{lock}

-- name: read_schedule
-- Served by the primary key.
select {columns of schedule}
from schedules
where task_id = :task_id

-- name: list_schedules
-- All schedules, for listings.
select {columns of schedule}
from schedules
order by task_id

-- name: write_schedule
-- Served by the primary key.
insert into schedules (
    task_id, task_uuid, task_version, version, state, reason, next_at, last_due_at, timing, since, runs_left, zone_data
)
values (
    :task_id, :task_uuid, :task_version, :version, :state, :reason, :next_at, :last_due_at, :timing, :since, :runs_left,
    :zone_data
)
on conflict (task_id) do update
set task_version = excluded.task_version,
    version = excluded.version,
    state = excluded.state,
    reason = excluded.reason,
    next_at = excluded.next_at,
    last_due_at = excluded.last_due_at,
    timing = excluded.timing,
    since = excluded.since,
    runs_left = excluded.runs_left,
    zone_data = excluded.zone_data

-- name: change_timing
-- Served by the primary key. A schedule that was stopped is tried again.
update schedules
set task_version = :task_version,
    version = version + 1,
    timing = :timing,
    state = case when {state is schedule.stopped} then {to:schedule.stopped.change} else state end,
    reason = case when {state is schedule.stopped} then null else reason end
where task_id = :task_id

-- name: delete_schedule
-- Served by the primary key.
delete from schedules
where task_id = :task_id

-- name: pause_schedule
-- Served by the primary key.
update schedules
set state = {to:schedule.active.pause}, reason = :reason, version = version + 1
where task_id = :task_id
  and {state in schedule.pause}

-- name: resume_schedule
-- Served by the primary key or schedules_resting.
update schedules
set state = :state,
    reason = :reason,
    next_at = :next_at,
    last_due_at = :last_due_at,
    since = :since,
    zone_data = :zone_data,
    version = version + 1
where task_id = :task_id
  and {state in schedule.resume}

-- name: give_runs_back
-- Served by the primary key. For schedules that count their runs; a version begins with that of the task whose trigger
-- it is (`_first_version`), and what an older trigger skipped is no matter of this one.
update schedules
set runs_left = schedules.runs_left + rows.count, version = schedules.version + 1
from {rows:task_id bigint, task_version bigint, count bigint}
where schedules.task_id = rows.task_id
  and schedules.runs_left is not null
  and schedules.version >> 32 <= rows.task_version
returning schedules.task_id

-- name: revive_schedule
-- Served by the primary key or schedules_resting.
update schedules
set state = {to:schedule.finished.revive}, reason = null, next_at = :next_at, zone_data = :zone_data, version = version + 1
where task_id = :task_id
  and {state in schedule.revive}

-- name: reckon_schedule
-- Served by the primary key; the row is locked by lock_schedule in the same transaction.
update schedules
set task_version = :task_version,
    state = :state,
    reason = :reason,
    next_at = :next_at,
    timing = :timing,
    since = :since,
    runs_left = :runs_left,
    zone_data = :zone_data,
    version = version + 1
where task_id = :task_id

-- name: list_by_older_zone_data
-- Served by the primary key: all schedules, a range of ids at a time, once in the life of a clock.
select {columns of schedule}
from schedules
where task_id > :after_id
  and task_id <= :up_to_id
  and {state in schedule.fire}
  and next_at > :now
  and (zone_data is null or zone_data < :edition)
order by task_id

-- name: last_schedule
-- Served by the primary key.
select task_id
from schedules
where task_id > :after_id
order by task_id desc
limit 1

-- name: reckon_again
-- Joined by primary key: the version is the token, and `is true` hides schedules_due, as for advance_schedules.
update schedules
set version = schedules.version + 1, next_at = rows.next_at, zone_data = :zone_data
from {rows:task_id bigint, version bigint, next_at time}
where schedules.task_id = rows.task_id
  and schedules.version = rows.version
  and ({schedules.state in schedule.fire}) is true
returning schedules.task_id

-- name: read_task_names
-- Served by the primary key.
select id, name
from tasks
where id in {each:ids bigint}

-- name: read_upcoming
-- Served by schedules_due.
select {columns of schedule}
from schedules
where {state in schedule.fire}
  and (next_at, task_id) > (:after_at, :after_id)
  and next_at <= :until
order by next_at, task_id
limit :limit

-- name: advance_schedules
-- Joined by primary key: the version is the token. Comparing next_at would join through schedules_due instead, and
-- schedules due at one instant would each visit all of them; `is true` hides that schedules_due fits the state.
update schedules
set version = schedules.version + 1,
    next_at = rows.next_at,
    last_due_at = rows.last_due_at,
    state = rows.state,
    reason = rows.reason,
    runs_left = rows.runs_left,
    zone_data = :zone_data
from {rows:task_id bigint, version bigint, next_at time, last_due_at time, state text, reason text, runs_left bigint}
where schedules.task_id = rows.task_id
  and schedules.version = rows.version
  and ({schedules.state in schedule.fire}) is true
returning schedules.task_id

-- name: insert_scheduled_runs
insert into runs (
    uuid, task_id, task_version, cause, due_at, previous_due_at, asked_at, ready_at, starts_at, spread_until, state, reason,
    overlap, caught_up
)
select rows.uuid, rows.task_id, rows.task_version, rows.cause, rows.due_at, rows.previous_due_at, :now, rows.ready_at,
    rows.starts_at, rows.spread_until, rows.state, rows.reason, rows.overlap, rows.caught_up
from {rows:uuid uuid, task_id bigint, task_version integer, cause text, due_at time, previous_due_at time, ready_at time, starts_at time, spread_until time, state text, reason text, overlap text, caught_up bool}
where true
on conflict (uuid) do nothing

-- name: insert_ledger
insert into ledger (task_id, task_version, first_due_at, last_due_at, count, verdict, reason, created_at)
select rows.task_id, rows.task_version, rows.first_due_at, rows.last_due_at, rows.count, rows.verdict, rows.reason,
    rows.now
from {rows:task_id bigint, task_version integer, first_due_at time, last_due_at time, count bigint, verdict text, reason text, now time}

-- === followed schedules ===

-- name: begin_followed
-- Served by the primary key. A schedule that begins to be followed is asked for at once.
insert into followed (task_id, touched, answered, asking, fence, ready_at, seen_at, failures, reach, late)
values (:task_id, 1, 0, false, 0, :ready_at, :now, 0, :reach, 0)
on conflict (task_id) do update
set touched = followed.touched + 1,
    asking = false,
    fence = followed.fence + 1,
    ready_at = excluded.ready_at,
    seen_at = excluded.seen_at,
    failures = 0,
    failing_since = null,
    reason = null,
    reach = excluded.reach,
    look_at = null

-- name: go_on_following
-- Served by the primary key. What was changed or resumed is asked for again; whoever asks just then is answered in vain.
update followed
set touched = touched + 1,
    asking = false,
    fence = fence + 1,
    ready_at = :ready_at,
    seen_at = :now,
    failures = 0,
    failing_since = null,
    reason = null,
    reach = coalesce(:reach, reach),
    look_at = :look_at
where task_id = :task_id

-- name: rest_followed
-- Served by the primary key. Whoever asks now is answered in vain.
update followed
set asking = false, fence = fence + 1, ready_at = null, look_at = null, failures = 0, failing_since = null, reason = null
where task_id = :task_id

-- name: end_followed
-- Served by the primary key. What was handed over is reached by no window any more: the watch deletes it, then this row.
update followed
set asking = false, fence = fence + 1, ready_at = null, look_at = null, failing_since = null, reach = :never
where task_id = :task_id

-- name: advance_followed
-- Served by the primary key. A window was fired, or left out up to `cut`: what is next is asked for, and late rows are.
update followed
set touched = followed.touched + 1,
    ready_at = case when followed.asking then followed.ready_at when rows.active then :now end,
    look_at = case when rows.active then coalesce(followed.look_at, rows.look_at) end,
    reach = case when rows.cut is null or rows.cut < followed.reach then followed.reach else rows.cut end
from {rows:task_id bigint, look_at time, cut time, active bool}
where followed.task_id = rows.task_id

-- name: mark_windows
-- Served by runs_uuid.
update runs
set is_window = true
where uuid in {each:ids uuid}

-- name: touch_followed
-- Served by the primary key. While somebody asks, or asks in vain, it is asked again after that.
update followed
set touched = touched + 1,
    ready_at = case when asking or failures > 0 or ready_at is null or ready_at < :now then ready_at else :now end
where task_id in {each:ids bigint}
returning task_id

-- name: claim_asks
-- Served by followed_ready. It is asked for something at each recheck too, touched or not.
with picked as materialized (
    select task_id
    from followed
    where ready_at is not null
      and ready_at <= :now
    order by ready_at, task_id
    limit :limit
    {skip_locked}
)
update followed
set asking = true,
    fence = fence + 1,
    ready_at = :until,
    touched = case when answered < touched then touched else touched + 1 end
where task_id in (select task_id from picked)
returning task_id

-- name: renew_ask
-- Served by the primary key.
update followed
set ready_at = :until
where task_id = :task_id
  and fence = :fence
  and asking
returning task_id

-- name: claim_looks
-- Served by followed_look. The end of the lease is the token.
with picked as materialized (
    select task_id
    from followed
    where look_at is not null
      and look_at <= :now
    order by look_at, task_id
    limit :limit
    {skip_locked}
)
update followed
set look_at = :until
where task_id in (select task_id from picked)
returning task_id

-- name: renew_look
-- Served by the primary key or followed_look.
update followed
set look_at = :until
where task_id = :task_id
  and look_at = :held
returning task_id

-- name: read_following
-- Served by the primary keys.
select schedules.*, tasks.name, followed.touched, followed.answered, followed.fence, followed.ready_at, followed.seen_at,
    followed.asked_at, followed.answer_at, followed.failures, followed.failing_since, followed.reason as why,
    followed.reach, followed.look_at
from followed
join schedules on schedules.task_id = followed.task_id
join tasks on tasks.id = followed.task_id
where followed.task_id in {each:ids bigint}
order by followed.task_id

-- name: list_following
-- All of them, for listings.
select schedules.*, tasks.name, followed.touched, followed.answered, followed.fence, followed.ready_at, followed.seen_at,
    followed.asked_at, followed.answer_at, followed.failures, followed.failing_since, followed.reason as why,
    followed.reach, followed.look_at
from followed
join schedules on schedules.task_id = followed.task_id
join tasks on tasks.id = followed.task_id
order by followed.task_id

-- name: answer_followed
-- Served by the primary key. The answer stands only if it knows of as much as any before it.
update followed
set answered = :touched,
    asking = false,
    ready_at = case when touched > :touched then cast(:now as {time}) else :recheck_at end,
    seen_at = :now,
    asked_at = :now,
    answer_at = :answer_at,
    failures = 0,
    failing_since = null,
    reason = null
where task_id = :task_id
  and fence = :fence
  and answered < :touched
returning task_id

-- name: fail_ask
-- Served by the primary key.
update followed
set asking = false,
    ready_at = :ready_at,
    seen_at = :now,
    failures = failures + 1,
    failing_since = coalesce(failing_since, :now),
    reason = :reason
where task_id = :task_id
  and fence = :fence
returning failures

-- name: release_ask
-- Served by the primary key.
update followed
set asking = false, ready_at = :now
where task_id = :task_id
  and fence = :fence
  and asking
returning task_id

-- name: move_next
-- Served by the primary key; the row is locked by lock_schedule in the same transaction.
update schedules
set next_at = :next_at, version = version + 1
where task_id = :task_id

-- name: record_look
-- Served by the primary key or followed_look.
update followed
set look_at = :look_at,
    reach = case when reach < :reach then :reach else reach end,
    late = late + :made
where task_id = :task_id
  and look_at = :held
returning late

-- name: fail_look
-- Served by the primary key or followed_look.
update followed
set look_at = :look_at
where task_id = :task_id
  and look_at = :held

-- name: read_barred
-- Served by runs_windows.
select previous_due_at, due_at, state
from runs
where task_id = :task_id
  and due_at > :after
  and is_window
  and {state in run.barred}

-- name: insert_late_run
insert into runs (
    uuid, task_id, task_version, cause, due_at, previous_due_at, asked_at, ready_at, state, overlap, caught_up, is_window
)
values (
    :uuid, :task_id, :task_version, :cause, :due_at, :previous_due_at, :now, :now, {first:run}, :overlap, true, true
)
on conflict (uuid) do nothing
returning id

-- name: read_handed_over
-- Served by the primary key.
select handed_over.key_text, handed_over.due_at
from {rows:key_text text, due_at time}
join handed_over on handed_over.task_id = :task_id and handed_over.due_at = rows.due_at
    and handed_over.key_text = rows.key_text

-- name: insert_handed_over
insert into handed_over (task_id, due_at, key_text)
select :task_id, rows.due_at, rows.key_text
from {rows:key_text text, due_at time}
where true
on conflict (task_id, due_at, key_text) do nothing

-- name: next_following
-- Served by followed_ready and followed_look.
select min(ready_at) as ready_at
from followed
where ready_at is not null
union all
select min(look_at) as ready_at
from followed
where look_at is not null

-- name: list_unanswered
-- Served by followed_failing.
select tasks.name, followed.reason, followed.failing_since
from followed
join tasks on tasks.id = followed.task_id
where followed.failing_since is not null
order by tasks.name
limit :limit

-- name: find_unreached
-- Served by the primary key. Whom no window and no look can reach any more, a batch of them; the order of the join is meant.
select picked.task_id, max(picked.due_at) as until
from (
    select handed_over.task_id, handed_over.due_at
    from followed
    cross join handed_over
    where handed_over.task_id = followed.task_id
      and handed_over.due_at <= followed.reach
    order by handed_over.task_id, handed_over.due_at
    limit :limit
) as picked
group by picked.task_id
order by picked.task_id

-- name: delete_handed_over
-- Served by the primary key.
delete from handed_over
where task_id = :task_id
  and due_at <= :until
returning task_id

-- name: delete_ended_followed
-- Served by the primary key. Their tasks are gone or follow nothing, and nothing is left of what was handed over.
delete from followed
where reach = :never
  and not exists (select 1 from handed_over where handed_over.task_id = followed.task_id)
returning task_id

-- === events ===

-- name: insert_events
insert into events (source, event_id, type, subject, occurred_at, data, digest, received_at)
select rows.source, rows.event_id, rows.type, rows.subject, rows.occurred_at, rows.data, rows.digest, rows.now
from {rows:source text, event_id text, type text, subject text, occurred_at time, data text, digest text, now time}
where true
on conflict (source, event_id) do nothing
returning id, source, event_id

-- name: read_digests
-- Served by events_identity.
select events.source, events.event_id, events.digest
from events
join {rows:source text, event_id text} on events.source = rows.source and events.event_id = rows.event_id

-- name: insert_event_runs
-- Version and pause of the task are compared in the statement that writes. Served by the primary key of tasks.
insert into runs (uuid, task_id, task_version, cause, due_at, asked_at, ready_at, state, event_id)
select rows.uuid, rows.task_id, rows.task_version, rows.cause, :now, :now, :now, {first:run}, rows.event_id
from {rows:uuid uuid, task_id bigint, task_version integer, cause text, event_id bigint}
join tasks on tasks.id = rows.task_id and tasks.version = rows.task_version and {tasks.state in task.pause}
where true
on conflict (uuid) do nothing
returning id, uuid

-- name: insert_passed_over
-- As insert_event_runs, for a task that is paused: the ledger says that its event made no run.
insert into ledger (task_id, task_version, first_due_at, last_due_at, count, verdict, reason, created_at)
select rows.task_id, rows.task_version, :now, :now, 1, 'skipped', rows.reason, :now
from {rows:task_id bigint, task_version integer, reason text}
join tasks on tasks.id = rows.task_id and tasks.version = rows.task_version and {tasks.state in task.resume}
where true
returning id

-- name: insert_claimed_runs
-- As insert_event_runs, for the process that took the event in and holds the runs at once.
insert into runs (
    uuid, task_id, task_version, cause, due_at, asked_at, ready_at, started_at, state, attempts, fence, event_id
)
select rows.uuid, rows.task_id, rows.task_version, rows.cause, :now, :now, :until, :now, {to:run.due.claim}, 1, 1,
    rows.event_id
from {rows:uuid uuid, task_id bigint, task_version integer, cause text, event_id bigint}
join tasks on tasks.id = rows.task_id and tasks.version = rows.task_version and {tasks.state in task.pause}
where true
on conflict (uuid) do nothing
returning id, uuid

-- === runs ===

-- name: insert_run
insert into runs (
    uuid, task_id, task_version, cause, due_at, previous_due_at, asked_at, ready_at, state, dead_letter_id, cursor_text,
    event_id
)
values (
    :uuid, :task_id, :task_version, :cause, :due_at, :previous_due_at, :now, :now, {first:run}, :dead_letter_id, :cursor,
    :event_id
)
on conflict (uuid) do nothing
returning id

-- name: pick_runs
-- Served by runs_ready. A window of a followed schedule takes turns with the others, as what is caught up does.
select id, task_id, task_version, overlap, caught_up or is_window as takes_turns, due_at
from runs
where {state in run.claim}
  and ready_at <= :now
order by ready_at, id
limit :limit
{skip_locked}

-- name: lock_slots
-- Served by the primary key, in one order everywhere.
select id, slot
from tasks
where id in {each:ids bigint}
order by id
{lock}

-- name: read_queued
-- Served by runs_queued.
select distinct task_id
from runs
where {state in run.wake}
  and task_id in {each:ids bigint}

-- name: claim_runs
-- Served by the primary key; the rows are locked by pick_runs in the same transaction.
update runs
set state = {to:run.due.claim},
    attempts = attempts + 1,
    fence = fence + 1,
    ready_at = :until,
    started_at = coalesce(started_at, :now)
where id in {each:ids bigint}

-- name: take_slots
-- Served by the primary key.
update tasks
set slot = rows.run_id
from {rows:task_id bigint, run_id bigint}
where tasks.id = rows.task_id

-- name: move_waiting
-- Served by the primary key; the rows are locked by pick_runs in the same transaction.
update runs
set state = rows.state, reason = rows.reason, ended_at = rows.ended_at
from {rows:id bigint, state text, reason text, ended_at time}
where runs.id = rows.id
  and ({runs.state in run.skip}) is true

-- name: ask_to_stop
-- Served by the primary key.
update runs
set stop_reason = :reason
where id = :id
  and {state in run.fail}

-- name: free_slot
-- Served by the primary key.
update tasks
set slot = null
where id = :task_id
  and slot = :run_id
returning id

-- name: wake_next
-- Served by runs_queued. The pick is locked: one that is cancelled just then is passed over for the next.
with picked as materialized (
    select id
    from runs
    where task_id = :task_id
      and {state in run.wake}
    order by due_at, id
    limit 1
    {lock}
)
update runs
set state = {to:run.queued.wake}, ready_at = :now, reason = null
where id in (select id from picked)
returning id

-- name: renew_run
-- Served by the primary key, and by runs_queued for the run that waits to replace this one. It is looked for here, since
-- a claim that wrote into the row of the run that it waits for would lock the two in the wrong order.
update runs
set ready_at = :until,
    stop_reason = case
        when stop_reason is null and overlap is not null and not caught_up and not is_window and exists (
            select 1
            from runs as waiting
            where waiting.task_id = runs.task_id
              and {waiting.state in run.wake}
              and waiting.overlap = 'replace'
              and not waiting.caught_up
        )
        then :replaced
        else stop_reason
    end
where id = :id
  and fence = :fence
  and {state in run.give_back}
returning stop_reason

-- name: checkpoint_run
-- Served by the primary key. A page that is done is progress: for the next one, this is the first attempt.
update runs
set cursor_text = :cursor,
    resolved = resolved + :resolved,
    confirmed = confirmed + :confirmed,
    dropped = dropped + :dropped,
    dead = dead + :dead,
    open = open + :open,
    attempts = 1,
    ready_at = :until
where id = :id
  and fence = :fence
  and {state in run.settle}
returning open, dead, stop_reason

-- name: settle_run
-- Served by the primary key, within the transaction of checkpoint_run.
update runs
set state = {to:run.running.settle}
where id = :id
  and {state in run.settle}

-- name: give_back_run
-- Served by the primary key.
update runs
set state = {to:run.running.give_back},
    ready_at = :ready_at,
    attempts = attempts - :uncount,
    reason = :reason
where id = :id
  and fence = :fence
  and {state in run.give_back}
returning id

-- name: end_run
-- Served by the primary key.
update runs
set state = :state, reason = :reason, ended_at = :now
where id = :id
  and fence = :fence
  and {state in run.fail}
returning open

-- name: drop_open
-- Served by the primary key, within the transaction that cancels the run and its open deliveries.
update runs
set dropped = dropped + open, open = 0
where id = :id

-- name: lock_run
-- Served by runs_uuid.
select id
from runs
where uuid = :uuid
{lock}

-- name: lock_runs
-- Served by the primary key, in one order everywhere.
select id, dead_letter_id
from runs
where id in {each:ids bigint}
order by id
{lock}

-- name: cancel_waiting_run
-- Served by the primary key.
update runs
set state = {to:run.due.cancel}, reason = :reason, ended_at = :now
where id = :id
  and {state in run.queue|wake|release}

-- name: cancel_settling_run
-- Served by the primary key or runs_settling.
update runs
set state = {to:run.settling.cancel}, reason = :reason, ended_at = :now
where id = :id
  and {state is run.settling}

-- name: finish_settled
-- Served by the primary key or runs_settling.
update runs
set state = case when dead > 0 then {to:run.settling.part} else {to:run.settling.finish} end, ended_at = :now
where id in {each:ids bigint}
  and open = 0
  and {state is run.settling}
returning id

-- name: read_runs_by_id
-- Served by the primary key.
select {columns of run}
from runs
join tasks on tasks.id = runs.task_id
left join events on events.id = runs.event_id
where runs.id in {each:ids bigint}

-- name: read_run_by_uuid
-- Served by runs_uuid.
select {columns of run}
from runs
join tasks on tasks.id = runs.task_id
left join events on events.id = runs.event_id
where runs.uuid = :uuid

-- name: read_run_origin
-- Served by the primary key.
select due_at, previous_due_at, event_id
from runs
where id = :id

-- name: count_held_runs
-- Served by runs_held.
select runs.task_id, tasks.name, count(*) as count, min(runs.due_at) as first_due_at, max(runs.due_at) as last_due_at,
    min(runs.asked_at) as since, max(runs.overlap) as overlap, max(runs.task_version) as task_version
from runs
join tasks on tasks.id = runs.task_id
where {runs.state in run.release}
group by runs.task_id, tasks.name
order by tasks.name

-- name: list_held_runs
-- Served by runs_held.
select due_at
from runs
where task_id = :task_id
  and {state in run.release}
order by due_at
limit :limit

-- name: release_held_runs
-- Served by runs_held.
update runs
set state = {to:run.held.release}, reason = null, ready_at = :now
where task_id in {each:ids bigint}
  and {state in run.release}
returning id, task_id

-- name: drop_held_runs
-- Served by runs_held.
update runs
set state = {to:run.held.cancel}, reason = :reason, ended_at = :now
where task_id in {each:ids bigint}
  and {state in run.release}
returning id, task_id

-- name: list_runs
-- Served by the primary key, backwards.
select {columns of run}
from runs
join tasks on tasks.id = runs.task_id
left join events on events.id = runs.event_id
where runs.id < :before
  and (cast(:state as text) is null or runs.state = :state)
order by runs.id desc
limit :limit

-- name: list_runs_of_task
-- Served by runs_task, backwards.
select {columns of run}
from runs
join tasks on tasks.id = runs.task_id
left join events on events.id = runs.event_id
where runs.task_id = :task_id
  and runs.id < :before
  and (cast(:state as text) is null or runs.state = :state)
order by runs.id desc
limit :limit

-- name: read_runs_between
-- Served by runs_task.
select {columns of run}
from runs
join tasks on tasks.id = runs.task_id
left join events on events.id = runs.event_id
where runs.task_id = :task_id
  and runs.due_at between :first and :last
order by runs.id desc
limit :limit

-- name: next_ready
-- Served by runs_ready and deliveries_ready.
select min(ready_at) as ready_at
from runs
where {state in run.claim}
union all
select min(ready_at) as ready_at
from deliveries
where {state in delivery.claim}

-- === backfills ===

-- name: insert_backfill
-- Served by the primary key of tasks: none is made of a task that was removed meanwhile.
insert into backfills (uuid, task_id, task_version, first_due_at, last_due_at, total, actor, created_at)
select :uuid, tasks.id, :task_version, :first_due_at, :last_due_at, :total, :actor, :now
from tasks
where tasks.id = :task_id
  and {tasks.state in task.remove}
on conflict (uuid) do nothing
returning id

-- name: insert_backfill_runs
-- They take no slot: overlap is null.
insert into runs (
    uuid, task_id, task_version, cause, due_at, previous_due_at, asked_at, ready_at, starts_at, state, backfill_id
)
select rows.uuid, :task_id, :task_version, rows.cause, rows.due_at, rows.previous_due_at,
    :now, rows.ready_at, rows.starts_at, {first:run}, :backfill_id
from {rows:uuid uuid, cause text, due_at time, previous_due_at time, ready_at time, starts_at time}
where true
on conflict (uuid) do nothing

-- name: count_runs_by_uuid
-- Served by runs_uuid.
select state, count(*) as count
from runs
where uuid in {each:ids uuid}
group by state

-- name: list_backfills_between
-- All of them: a few.
select uuid
from backfills
where task_id = :task_id
  and first_due_at <= :last
  and last_due_at >= :first
order by id desc
limit 5

-- name: read_backfill
-- Served by backfills_uuid.
select backfills.*, tasks.name as task_name
from backfills
join tasks on tasks.id = backfills.task_id
where backfills.uuid = :uuid

-- name: list_backfills
-- Served by the primary key, backwards.
select backfills.*, tasks.name as task_name
from backfills
join tasks on tasks.id = backfills.task_id
where backfills.id < :before
order by backfills.id desc
limit :limit

-- name: count_backfill_runs
-- Served by runs_backfill.
select backfill_id, state, count(*) as count
from runs
where backfill_id in {each:ids bigint}
group by backfill_id, state

-- name: cancel_backfill_runs
-- Served by runs_backfill.
update runs
set state = {to:run.due.cancel}, reason = :reason, ended_at = :now
where backfill_id = :backfill_id
  and ({state in run.queue|wake|release}) is true
returning id

-- === deliveries ===

-- name: insert_deliveries
insert into deliveries (
    run_id, message_id, key_json, data, requeue, state, ready_at, attempts, errors, created_at
)
select rows.run_id, rows.message_id, rows.key_json, rows.data, rows.requeue, {first:delivery}, rows.ready_at, rows.attempts,
    rows.errors, rows.now
from {rows:run_id bigint, message_id uuid, key_json text, data text, requeue integer, ready_at time, attempts integer, errors text, now time}

-- name: claim_deliveries
-- Served by deliveries_ready.
with picked as materialized (
    select id
    from deliveries
    where {state in delivery.claim}
      and ready_at <= :now
    order by ready_at, id
    limit :limit
    {skip_locked}
)
update deliveries
set state = {to:delivery.waiting.claim}, attempts = attempts + 1, fence = fence + 1, ready_at = :until
where id in (select id from picked)
returning id, run_id, message_id, key_json, data, requeue, state, reason, ready_at, attempts, fence, errors,
    created_at, ended_at

-- name: renew_deliveries
-- Served by the primary key, as settle_deliveries.
update deliveries
set ready_at = :until
from {rows:id bigint, fence bigint}
where deliveries.id = rows.id
  and deliveries.fence = rows.fence
  and ({deliveries.state in delivery.confirm}) is true
returning deliveries.id

-- name: settle_deliveries
-- Served by the primary key: `is true` hides from the planner that deliveries_ready would do, which may be long.
update deliveries
set state = rows.state,
    reason = rows.reason,
    ready_at = rows.ready_at,
    attempts = rows.attempts,
    errors = rows.errors,
    ended_at = rows.ended_at
from {rows:id bigint, fence bigint, state text, reason text, ready_at time, attempts integer, errors text, ended_at time}
where deliveries.id = rows.id
  and deliveries.fence = rows.fence
  and ({deliveries.state in delivery.confirm}) is true
returning deliveries.id

-- name: count_settled
-- Served by the primary key.
update runs
set open = runs.open - rows.closed,
    confirmed = runs.confirmed + rows.confirmed,
    dead = runs.dead + rows.dead,
    dropped = runs.dropped + rows.dropped
from {rows:id bigint, closed bigint, confirmed bigint, dead bigint, dropped bigint}
where runs.id = rows.id

-- name: cancel_deliveries
-- Served by deliveries_run.
update deliveries
set state = {to:delivery.waiting.cancel}, reason = :reason, ended_at = :now, fence = fence + 1
where run_id = :run_id
  and {state in delivery.cancel}

-- name: list_deliveries
-- Served by deliveries_run.
select *
from deliveries
where run_id = :run_id
order by id
limit :limit

-- === dead letters ===

-- name: insert_dead_letter
insert into dead_letters (
    uuid, identity, kind, state, reason, task_id, task_name, task_version, run_id, run_uuid, message_id, key_json, data,
    requeue, attempts, broker, queue, origin, body, content_type, headers, properties, cursor_text, created_at, parent_id
)
values (
    :uuid, :identity, :kind, {first:dead_letter}, :reason, :task_id, :task_name, :task_version, :run_id, :run_uuid, :message_id,
    :key_json, :data, :requeue, :attempts, :broker, :queue, :origin, :body, :content_type, :headers, :properties,
    :cursor_text, :now, :parent_id
)
on conflict (identity) do nothing
returning id

-- name: read_parent
-- Served by dead_letters_message.
select id
from dead_letters
where message_id = :message_id
order by id desc
limit 1

-- name: read_dead_letter
-- Served by dead_letters_uuid.
select *
from dead_letters
where uuid = :uuid

-- name: read_dead_letter_by_id
-- Served by the primary key.
select *
from dead_letters
where id = :id

-- name: read_requeued
-- Served by the primary key.
select kind, attempts
from dead_letters
where id = :id

-- name: note_attempts
-- Served by the primary key.
update dead_letters
set attempts = :attempts, reason = :reason, cursor_text = :cursor
where id = :id

-- name: list_dead_letters
-- Served by the primary key, backwards.
select *
from dead_letters
where id < :before
  and (cast(:state as text) is null or state = :state)
  and (cast(:task as text) is null or task_name = :task)
order by id desc
limit :limit

-- name: group_dead_letters
-- Served by dead_letters_open.
select task_name, queue, reason, count(*) as count
from dead_letters
where {state in dead_letter.requeue|release}
group by task_name, queue, reason
order by count(*) desc
limit 100

-- name: find_open_by_uuid
-- Served by dead_letters_uuid. Locked in one order, so that two operators do not wait for each other.
select id
from dead_letters
where uuid in {each:ids uuid}
  and ({state in dead_letter.requeue|release}) is true
order by id
{lock}

-- name: find_open
-- Served by dead_letters_open. Locked as find_open_by_uuid.
select id
from dead_letters
where {state in dead_letter.requeue|release}
  and (cast(:task as text) is null or task_name = :task)
order by id
limit :limit
{lock}

-- name: take_into_requeue
-- Served by the primary key. Of two operators, one gets each dead letter.
update dead_letters
set state = {to:dead_letter.open.requeue}, requeue_id = :requeue_id, requeued_at = null
where id in {each:ids bigint}
  and ({state in dead_letter.requeue}) is true
returning id

-- name: discard_dead_letters
-- Served by the primary key.
update dead_letters
set state = {to:dead_letter.open.discard}, ended_at = :now, ended_reason = :reason
where id in {each:ids bigint}
  and ({state in dead_letter.requeue|release}) is true
returning uuid

-- name: settle_requeued
-- Served by the primary key. Each time it goes out again it has a new requeue number.
update dead_letters
set state = :state,
    requeue = requeue + 1,
    reason = coalesce(:why, reason),
    ended_reason = :ended_reason,
    ended_at = :ended_at
where id = :id
  and {state in dead_letter.confirm}
returning uuid, requeue_id

-- name: insert_requeue
insert into requeues (uuid, state, rate, ask, total, actor, created_at, ready_at)
values (:uuid, {first:requeue}, :rate, :ask, :total, :actor, :now, :now)
returning *

-- name: size_requeue
-- Served by the primary key.
update requeues
set total = :total
where id = :id

-- name: read_requeue
-- Served by requeues_uuid.
select *
from requeues
where uuid = :uuid

-- name: read_requeue_by_id
-- Served by the primary key.
select *
from requeues
where id = :id

-- name: list_requeues
-- By the primary key, backwards: the latest of a few.
select *
from requeues
order by id desc
limit :limit

-- name: ready_requeues
-- Served by requeues_ready.
select *
from requeues
where {state in requeue.stop}
  and ready_at <= :now
order by ready_at, id
limit :limit

-- name: next_requeue
-- Served by requeues_ready.
select min(ready_at) as ready_at
from requeues
where {state in requeue.stop}

-- name: advance_requeue
-- Served by the primary key. The count that was seen is the token.
update requeues
set sent = sent + :count, state = :state, ready_at = :ready_at
where id = :id
  and sent = :seen
  and {state in requeue.stop}
returning id

-- name: next_requeued
-- Served by dead_letters_requeuing.
select *
from dead_letters
where requeue_id = :requeue_id
  and {state in dead_letter.confirm}
  and requeued_at is null
order by id
limit :limit

-- name: mark_sent
-- Served by the primary key.
update dead_letters
set requeued_at = :now
where id in {each:ids bigint}

-- name: retake_strangers
-- Served by dead_letters_strangers. Whoever took them to publish them has died: they are published again.
with picked as materialized (
    select id
    from dead_letters
    where {state is dead_letter.requeuing}
      and task_id is null
      and requeued_at < :before
    order by requeued_at
    limit :limit
    {skip_locked}
)
update dead_letters
set requeued_at = :now
where id in (select id from picked)
returning *

-- name: count_requeued
-- Served by the primary key. What waits for an answer goes on with it; what sends keeps to its rate.
update requeues
set recovered = recovered + :recovered,
    failed = failed + :failed,
    ready_at = case when {state in requeue.pause} and sent < total then ready_at else :now end
where id = :id

-- name: move_requeue
-- Served by the primary key. What came back before it was paused is not held against it when it is resumed.
update requeues
set state = :state,
    reason = :reason,
    ready_at = :ready_at,
    ended_at = :ended_at,
    forgiven = case when {state in requeue.resume} then failed else forgiven end
where id = :id
  and state = :seen
returning id

-- name: release_unsent
-- Served by dead_letters_requeuing.
update dead_letters
set state = {to:dead_letter.requeuing.reopen}
where requeue_id = :requeue_id
  and {state in dead_letter.reopen}
  and requeued_at is null

-- === watch ===

-- name: beat
-- Served by the primary key.
insert into components (instance, name, host, pid, started_at, seen_at, zone_data)
values (:instance, :name, :host, :pid, :started_at, :now, :zone_data)
on conflict (instance) do update set seen_at = excluded.seen_at

-- name: leave
-- Served by the primary key.
delete from components
where instance = :instance

-- name: list_components
-- All of them: a handful.
select instance, name, host, pid, started_at, seen_at, zone_data
from components
order by name, instance

-- name: count_tasks
-- All tasks, up to :limit of them.
select count(*) as count
from (select name from tasks where {state in task.remove} limit :limit) as counted

-- name: count_schedules
-- All schedules, up to :limit of each.
select state, count(*) as count
from (select state from schedules where {state in schedule.fire} limit :limit) as counted
group by state
union all
select state, count(*) as count
from (select state from schedules where {state in schedule.rest} limit :limit) as counted
group by state

-- name: count_open_runs
-- Served by runs_ready, runs_queued, runs_settling and runs_held; counted up to :limit.
select state, count(*) as count
from (select state from runs where {state in run.claim} limit :limit) as counted
group by state
union all
select state, count(*) as count
from (select state from runs where {state in run.wake} limit :limit) as counted
group by state
union all
select state, count(*) as count
from (select state from runs where {state is run.settling} limit :limit) as counted
group by state
union all
select state, count(*) as count
from (select state from runs where {state in run.release} limit :limit) as counted
group by state

-- name: count_deliveries
-- Served by deliveries_ready; counted up to :limit.
select count(*) as count
from (select id from deliveries where {state in delivery.claim} limit :limit) as counted

-- name: count_dead_letters
-- Served by dead_letters_open; counted up to :limit.
select count(*) as count
from (select id from dead_letters where {state in dead_letter.requeue|release} limit :limit) as counted

-- name: oldest_schedule
-- Served by schedules_due.
select next_at
from schedules
where {state in schedule.fire}
  and next_at <= :now
order by next_at
limit 1

-- name: oldest_run
-- Served by runs_ready.
select ready_at
from runs
where {state in run.claim}
  and ready_at <= :now
order by ready_at
limit 1

-- name: list_held
-- Served by runs_ready: what was given back waits for its next try, later than now.
select tasks.name, max(picked.reason) as reason, min(picked.asked_at) as asked_at
from (
    select task_id, asked_at, reason
    from runs
    where {state in run.claim}
      and ready_at > :now
      and asked_at < :before
      and reason is not null
    order by ready_at
    limit :limit
) as picked
join tasks on tasks.id = picked.task_id
group by tasks.name
order by tasks.name

-- name: list_stopped
-- Served by schedules_resting.
select tasks.name, schedules.reason
from schedules
join tasks on tasks.id = schedules.task_id
where {schedules.state is schedule.stopped}
  and {schedules.state in schedule.rest}
order by tasks.name
limit :limit

-- name: read_ledger
-- Served by ledger_task.
select first_due_at, last_due_at, count, verdict, reason, task_version, created_at
from ledger
where task_id = :task_id
  and last_due_at >= :first
  and first_due_at <= :last
order by last_due_at desc
limit :limit

-- name: old_runs
-- Served by runs_ended.
select id
from runs
where ended_at < :before
  and open = 0
order by ended_at
limit :limit

-- name: delete_deliveries_of
-- Served by deliveries_run.
delete from deliveries
where run_id in {each:ids bigint}

-- name: delete_runs
-- Served by the primary key.
delete from runs
where id in {each:ids bigint}

-- name: delete_dead_letters
-- Served by dead_letters_ended.
delete from dead_letters
where id in (select id from dead_letters where ended_at < :before order by ended_at limit :limit)
returning id

-- name: delete_ledger
-- Served by ledger_created.
delete from ledger
where id in (select id from ledger where created_at < :before order by created_at limit :limit)
returning id

-- name: delete_audit
-- Served by audit_happened.
delete from audit
where id in (select id from audit where happened_at < :before order by happened_at limit :limit)
returning id

-- name: delete_events
-- Served by runs_event, and by events_received or the primary key: a run that is kept can still be carried out, and told of.
delete from events
where id in (
    select id
    from events
    where received_at < :before
      and not exists (select 1 from runs where runs.event_id = events.id)
    order by received_at
    limit :limit
)
returning id

-- name: delete_backfills
-- All of them, a few: runs_backfill tells of each whether a run is left.
delete from backfills
where id in (
    select id
    from backfills
    where created_at < :before
      and not exists (select 1 from runs where runs.backfill_id = backfills.id)
    order by id
    limit :limit
)
returning id

-- name: delete_components
-- All of them: a handful.
delete from components
where instance in (select instance from components where seen_at < :before limit :limit)
returning instance
