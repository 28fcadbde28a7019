-- Followed schedules: where each stands between its data and the clock, and who was handed over of it.

create table followed (
    task_id {key},
    touched bigint not null,
    answered bigint not null,
    asking {bool} not null,
    fence bigint not null,
    ready_at {time},
    seen_at {time} not null,
    asked_at {time},
    answer_at {time},
    failures integer not null,
    failing_since {time},
    reason text,
    reach {time} not null,
    look_at {time},
    late bigint not null
) {hot};
create index followed_ready on followed (ready_at, task_id) where ready_at is not null;
create index followed_look on followed (look_at, task_id) where look_at is not null;
create index followed_failing on followed (task_id) where failing_since is not null;

create table handed_over (
    task_id bigint not null,
    due_at {time} not null,
    key_text text not null,
    primary key (task_id, due_at, key_text)
);

alter table runs add column is_window {bool} not null default false;
create index runs_windows on runs (task_id, due_at)
    where is_window and state in ('due', 'queued', 'running', 'held', 'failed', 'expired', 'cancelled');
