-- The first schema. Words in braces differ by database: see store/sql.py.

create table tasks (
    id {id},
    uuid {uuid} not null,
    name text not null,
    version integer not null,
    state text not null,
    reason text,
    slot bigint,
    created_at {time} not null,
    changed_at {time} not null
) {hot};
create unique index tasks_uuid on tasks (uuid);
create unique index tasks_name on tasks (name) where state in ('active', 'paused');

create table task_changes (
    id integer primary key,
    count bigint not null
);
insert into task_changes (id, count) values (1, 0);

create table definitions (
    task_id bigint not null,
    version integer not null,
    definition text not null,
    created_at {time} not null,
    primary key (task_id, version)
);

create table schedules (
    task_id {key},
    task_uuid {uuid} not null,
    task_version integer not null,
    version bigint not null,
    state text not null,
    reason text,
    next_at {time},
    last_due_at {time},
    timing text not null
) {hot};
create index schedules_due on schedules (next_at, task_id) where state = 'active';
create index schedules_resting on schedules (state, task_id) where state in ('paused', 'finished', 'stopped');

create table events (
    id {id},
    source text not null,
    event_id text not null,
    type text not null,
    subject text,
    occurred_at {time} not null,
    data text,
    digest text not null,
    received_at {time} not null
);
create unique index events_identity on events (source, event_id);
create index events_received on events (received_at);

create table runs (
    id {id},
    uuid {uuid} not null,
    task_id bigint not null,
    task_version integer not null,
    cause text not null,
    due_at {time} not null,
    previous_due_at {time},
    asked_at {time} not null,
    ready_at {time} not null,
    started_at {time},
    ended_at {time},
    state text not null,
    reason text,
    stop_reason text,
    attempts integer not null default 0,
    fence bigint not null default 0,
    overlap text,
    caught_up {bool} not null default false,
    cursor_text text,
    event_id bigint,
    dead_letter_id bigint,
    resolved bigint not null default 0,
    confirmed bigint not null default 0,
    dead bigint not null default 0,
    dropped bigint not null default 0,
    open bigint not null default 0
) {hot};
create unique index runs_uuid on runs (uuid);
create index runs_ready on runs (ready_at, id) where state in ('due', 'running');
create index runs_queued on runs (task_id, state, due_at) where state = 'queued';
create index runs_settling on runs (id) where state = 'settling';
create index runs_task on runs (task_id, id);
create index runs_event on runs (event_id) where event_id is not null;
create index runs_ended on runs (ended_at) where ended_at is not null;

create table deliveries (
    id {id},
    run_id bigint not null,
    message_id {uuid} not null,
    key_json text not null,
    data text not null,
    requeue integer not null default 0,
    state text not null,
    reason text,
    ready_at {time} not null,
    attempts integer not null,
    fence bigint not null default 0,
    errors text not null,
    created_at {time} not null,
    ended_at {time}
) {hot};
create index deliveries_ready on deliveries (ready_at, id) where state in ('waiting', 'sending');
create index deliveries_run on deliveries (run_id, id);

create table dead_letters (
    id {id},
    uuid {uuid} not null,
    identity text not null,
    kind text not null,
    state text not null,
    reason text not null,
    task_id bigint,
    task_name text,
    task_version integer,
    run_id bigint,
    run_uuid {uuid},
    message_id {uuid},
    key_json text,
    data text,
    requeue integer not null default 0,
    attempts text not null,
    broker text,
    queue text,
    origin text,
    body {bytes},
    content_type text,
    headers text not null,
    properties text not null,
    cursor_text text,
    created_at {time} not null,
    ended_at {time},
    ended_reason text,
    parent_id bigint,
    requeued_at {time},
    requeue_id bigint
);
create unique index dead_letters_identity on dead_letters (identity);
create unique index dead_letters_uuid on dead_letters (uuid);
create index dead_letters_open on dead_letters (id) where state in ('open', 'quarantined');
create index dead_letters_requeuing on dead_letters (requeue_id, id) where state = 'requeuing';
create index dead_letters_strangers on dead_letters (requeued_at) where state = 'requeuing' and task_id is null;
create index dead_letters_message on dead_letters (message_id);
create index dead_letters_ended on dead_letters (ended_at) where ended_at is not null;

create table requeues (
    id {id},
    uuid {uuid} not null,
    state text not null,
    reason text,
    rate double precision not null,
    ask {bool} not null,
    total bigint not null,
    sent bigint not null default 0,
    recovered bigint not null default 0,
    failed bigint not null default 0,
    actor text not null,
    created_at {time} not null,
    ready_at {time} not null,
    ended_at {time}
);
create unique index requeues_uuid on requeues (uuid);
create index requeues_ready on requeues (ready_at, id) where state in ('canary', 'running');

create table ledger (
    id {id},
    task_id bigint not null,
    task_version integer not null,
    first_due_at {time} not null,
    last_due_at {time} not null,
    count bigint not null,
    verdict text not null,
    reason text not null,
    created_at {time} not null
);
create index ledger_task on ledger (task_id, last_due_at);
create index ledger_created on ledger (created_at);

create table cues (
    id {id},
    task_id bigint not null,
    key_json text not null,
    due_at {time} not null,
    data text not null,
    generation integer not null,
    state text not null,
    run_id bigint,
    fence bigint not null default 0,
    event_at {time}
);
create unique index cues_key on cues (task_id, key_json) where state <> 'taken';
create index cues_due on cues (due_at, id) where state = 'waiting';

create table audit (
    id {id},
    happened_at {time} not null,
    actor text not null,
    verb text not null,
    subject text not null,
    detail text
);
create index audit_happened on audit (happened_at);

create table components (
    instance text primary key,
    name text not null,
    host text not null,
    pid integer not null,
    started_at {time} not null,
    seen_at {time} not null
) {hot};

create table clock_samples (
    id integer primary key,
    sampled_at {time} not null
);
