-- What came back of a requeue before it was last resumed.

alter table requeues add column forgiven bigint not null default 0;
