"""Task files: what is read, what each mistake is told as, and what a plan says."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncue.config import BrokerConfig, Config, SourceConfig
from oncue.definition import (
    BrokerTarget,
    Definition,
    EventResolver,
    HttpTarget,
    Misfire,
    NoResolver,
    Retry,
    SqlResolver,
    Subscription,
)
from oncue.errors import TaskFileError
from oncue.taskfile import (
    check_references,
    definition_from_json,
    definition_to_json,
    read_task_file,
    read_tasks,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)

FULL = """\
[task.trial-ending]
description = "Mail everyone whose trial ends in three days"
schedule = { cron = "0 9 * * mon-fri", zone = "Europe/Athens" }
resolve  = { sql = "select id as key from trial", source = "app" }
target   = { broker = "main", queue = "celery", envelope = "celery", task = "emails.trial_ending" }
misfire  = { grace = "10m", catch_up = "all", max_age = "2d" }
overlap  = "queue"
expires  = "2h"
retry    = { attempts = 3, backoff = "fixed", first = "1s", cap = "1m" }
renamed_from = "trial-ends"

[[task.trial-ending.on]]
event = "trial.shortened"
match = { data = { days_left = [{ numeric = ["<=", 3] }] } }
do    = "fire"
all   = true

[task.hook]
target = { http = "https://example.org/hook", timeout = "3s", concurrency = 5, headers = { x = "y" } }
on = [{ event = "order.paid" }]
"""

TRIAL = Definition(
    name="trial-ending",
    description="Mail everyone whose trial ends in three days",
    schedule={"cron": "0 9 * * mon-fri", "zone": "Europe/Athens"},
    on=(Subscription("trial.shortened", match={"data": {"days_left": [{"numeric": ["<=", 3]}]}}, do="fire", all=True),),
    resolve=SqlResolver("select id as key from trial", "app"),
    target=BrokerTarget("main", "celery", envelope="celery", task="emails.trial_ending"),
    misfire=Misfire(timedelta(minutes=10), "all", timedelta(days=2)),
    overlap="queue",
    expires=timedelta(hours=2),
    retry=Retry(3, "fixed", timedelta(seconds=1), timedelta(minutes=1)),
    renamed_from="trial-ends",
)
HOOK = Definition(
    name="hook",
    target=HttpTarget("https://example.org/hook", timedelta(seconds=3), 5, {"x": "y"}),
    on=(Subscription("order.paid"),),
    resolve=EventResolver(),
)

T = 'target = { broker = "main", queue = "q" }\n'
S = 'schedule = { every = "5m" }\n'


def lines_of(text: str) -> list[str]:
    """Return the lines that a text is refused with."""
    with pytest.raises(TaskFileError) as caught:
        read_tasks(text, now=NOW)
    return str(caught.value).splitlines()


def test_a_file_is_read_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "tasks.toml"
    path.write_text(FULL, encoding="utf-8")

    assert read_task_file(path, now=NOW).definitions == [TRIAL, HOOK]


def test_an_empty_file_has_no_tasks() -> None:
    assert read_tasks("").definitions == []


@pytest.mark.parametrize(
    ("text", "resolver"),
    [
        (S, NoResolver()),
        ('on = [{ event = "a" }]\n', EventResolver()),
        (S + 'on = [{ event = "a" }]\n', NoResolver()),
        (S + "resolve = { event = true }\n", EventResolver()),
        ('on = [{ event = "a" }]\nresolve = { event = false }\n', NoResolver()),
    ],
)
def test_who_is_resolved_follows_from_the_triggers_unless_said(text: str, resolver: object) -> None:
    [task] = read_tasks("[task.a]\n" + T + text).definitions

    assert task.resolve == resolver


def test_a_time_of_toml_is_kept_as_text() -> None:
    [task] = read_tasks("[task.a]\n" + T + "schedule = { at = 2027-01-01T09:00:00Z }\n").definitions

    assert task.schedule == {"at": "2027-01-01T09:00:00+00:00"}


REFUSED = [
    ("[tasks.a]\n" + T, '1: tasks: there is no such key. Did you mean "task"? Known: calendar, task.'),
    ("task = 5", "1: task: this is not a table. Write {"),
    ("[task]\na = 5", "2: [task.a]: this is not a table. Write {"),
    ("[task.a]\n" + T, '1: [task.a]: it has no trigger. Write schedule = { cron = "0 9 * * *" }, or'),
    ("[task.a]\n" + S, "1: [task.a] target: it is missing. Write target = { broker ="),
    ("[task.Big]\n" + S + T, '1: [task.Big]: "Big" is not a task\'s name. Write small letters,'),
    ('[task."a b"]\n' + S + T, '1: [task.a b]: "a b" is not a task\'s name. Write small letters,'),
    (
        "[task.a]\n" + S + T + 'overlap = "skp"',
        '4: [task.a] overlap: "skp" is not known. Did you mean "skip"? Known: all',
    ),
    ("[task.a]\n" + S + T + "overlp = 1", '4: [task.a] overlp: there is no such key. Did you mean "overlap"? Known:'),
    ("[task.a]\n" + S + T + 'name = "b"', "4: [task.a] name: there is no such key."),
    ("[task.a]\n" + S + T + "description = 5", "4: [task.a] description: 5 is not text. Write it in quotes."),
    ("[task.a]\n" + S + T + 'expires = "0s"', "4: [task.a] expires: 0s is out of bounds. Write at least 1ms."),
    ("[task.a]\n" + S + T + "expires = 2", '4: [task.a] expires: 2 is not a duration. Write for example "250ms"'),
    ("[task.a]\n" + S + T + 'renamed_from = "A"', '4: [task.a] renamed_from: "A" is not a task\'s name.'),
    ("[task.a]\n" + S + T + 'renamed_from = "a"', '4: [task.a] renamed_from: "a" is still in this file.'),
    (
        "[task.a]\n" + S + T + 'misfire = { catch_up = "lastest" }',
        '4: [task.a] misfire.catch_up: "lastest" is not known. Did you mean "latest"? Known: none, latest, all.',
    ),
    ("[task.a]\n" + S + T + '[task.a.misfire]\ngrace = "1"', '5: [task.a] misfire.grace: "1" is not a duration.'),
    ("[task.a]\n" + S + T + "retry = { attempts = 0 }", "4: [task.a] retry.attempts: 0 is out of bounds."),
    (
        "[task.a]\n" + S + T + 'retry = { first = "1h" }',
        "4: [task.a] retry.cap: 5m is shorter than first, which is 1h.",
    ),
    ("[task.a]\n" + S + T + 'retry = { backoff = "x" }', '4: [task.a] retry.backoff: "x" is not known. Known: expo'),
    ("[task.a]\n" + T + "schedule = {}", "3: [task.a] schedule: it says nothing. Write exactly one of cron,"),
    (
        "[task.a]\n" + T + 'schedule = { corn = "x" }',
        '3: [task.a] schedule: there is no key "corn". Did you mean "cron"?',
    ),
    ("[task.a]\n" + T + 'schedule = { cron = "" }', "3: [task.a] schedule.cron: it is empty. Write when the task is"),
    ("[task.a]\n" + T + 'schedule = { cron = "0 99 * * *" }', '3: [task.a] schedule.cron: in the hour field "99"'),
    ("[task.a]\n" + T + 'schedule = { cron = "0 0 30 2 *" }', "3: [task.a] schedule.cron: "),
    ("[task.a]\n" + T + 'schedule = { cron = "0 0 * * *", zone = "Mars" }', "3: [task.a] schedule.zone: "),
    ("[task.a]\n" + T + 'schedule = "0 0 * * *"', "3: [task.a] schedule: this is not a table."),
    ("[task.a]\n" + S + T + "resolve = {}", "4: [task.a] resolve: it says neither sql nor event. Write { sql ="),
    (
        "[task.a]\n" + S + T + 'resolve = { sql = "x" }',
        '4: [task.a] resolve.source: it is missing. Write source = "app"',
    ),
    ("[task.a]\n" + S + T + 'resolve = { sql = " ", source = "a" }', "4: [task.a] resolve.sql: it is empty."),
    ("[task.a]\n" + S + T + "resolve = { event = 1 }", "4: [task.a] resolve.event: 1 is neither true nor false."),
    ("[task.a]\n" + S + T + 'resolve = { event = true, sql = "" }', "4: [task.a] resolve: it says event and more."),
    ("[task.a]\n" + S + "target = {}", "3: [task.a] target: it names neither a broker nor http. Write { broker ="),
    (
        "[task.a]\n" + S + 'target = { broker = "m", http = "h" }',
        "3: [task.a] target: it names both a broker and http.",
    ),
    ("[task.a]\n" + S + 'target = { broker = "m" }', "3: [task.a] target.queue: it is missing. Write queue ="),
    ("[task.a]\n" + S + 'target = { queue = "m" }', '3: [task.a] target.broker: it is missing. Write broker = "main"'),
    ("[task.a]\n" + S + 'target = { http = "ftp://x" }', '3: [task.a] target.http: "ftp://x" is not an address of the'),
    (
        "[task.a]\n" + S + 'target = { http = "http://x", concurrency = 0 }',
        "3: [task.a] target.concurrency: 0 is out of bounds. Write a whole number from 1 to 1000.",
    ),
    (
        "[task.a]\n" + S + 'target = { http = "http://x", headers = { a = 1 } }',
        "3: [task.a] target.headers.a: 1 is not text.",
    ),
    ("[task.a]\n" + S + 'target = { http = "http://[::1/x" }', '3: [task.a] target.http: "http://[::1/x" is not an'),
    ("[task.a]\n" + S + 'target = { http = "http://x:99999/" }', '3: [task.a] target.http: "http://x:99999/" is not'),
    ("[task.a]\n" + S + 'target = { http = "http://x/\\u0000" }', "3: [task.a] target.http: "),
    (
        "[task.a]\n" + S + 'target = { http = "http://x", headers = { content-length = "3" } }',
        "3: [task.a] target.headers.content-length: Oncue writes this header itself, for each message. Leave it out.",
    ),
    (
        "[task.a]\n" + S + 'target = { http = "http://x", headers = { a = "b\\r\\nc: d" } }',
        "3: [task.a] target.headers.a: it holds what a header cannot hold. Write one line",
    ),
    (
        "[task.a]\n" + S + 'target = { http = "http://x", headers = { "a b" = "c" } }',
        '3: [task.a] target.headers.a b: "a b" is not a header',
    ),
    (
        "[task.a]\n" + S + 'target = { broker = "m", queue = "q", envelope = "celery" }',
        "3: [task.a] target.task: the celery envelope needs the name of its worker's task. Write task =",
    ),
    ("[task.a]\n" + T + "on = 5", "3: [task.a] on: this is not a list."),
    ("[task.a]\n" + T + "[[task.a.on]]\n", '3: [task.a] on[0].event: it is missing. Write event = "order.paid".'),
    (
        "[task.a]\n" + T + '[[task.a.on]]\nevent = "e"\ndo = "cue"',
        '5: [task.a] on[0].do: "cue" does not work yet. Today',
    ),
    (
        "[task.a]\n" + T + '[[task.a.on]]\nevent = "e"\ndo = "frie"',
        '5: [task.a] on[0].do: "frie" is not known. Did you',
    ),
    ("[task.a]\n" + T + '[[task.a.on]]\nevent = "e"\nwhere = "x"', "5: [task.a] on[0].where: there is no such key."),
    (
        "[task.a]\n" + T + '[[task.a.on]]\nevent = "e"\n[[task.a.on]]\nevent = "f"\nmatch = { data = { a = "x" } }',
        '7: [task.a] on[1].match.data.a: "x" stands alone. Write a list of alternatives: ["x"].',
    ),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_a_mistake_is_told_with_its_line_and_the_remedy(text: str, sentence: str) -> None:
    [line] = lines_of(text)

    assert line.startswith(f"tasks.toml:{sentence}")
    assert line.endswith((".", "?"))


def test_all_mistakes_of_a_file_are_told_in_the_order_of_its_lines() -> None:
    text = (
        '[task.a]\noverlap = "x"\nexpires = 5\nschedule = { every = "5" }\nmisfire = { grace = "x", catch_up = "y" }\n'
        '[task.B]\ntarget = { broker = "m" }\n[task.c]\n' + S + T + "[extra]\n"
    )

    assert [line.split(": ")[0] + " " + line.split(": ")[1] for line in lines_of(text)] == [
        "tasks.toml:1 [task.a] target",
        "tasks.toml:2 [task.a] overlap",
        "tasks.toml:3 [task.a] expires",
        "tasks.toml:4 [task.a] schedule.every",
        "tasks.toml:5 [task.a] misfire.grace",
        "tasks.toml:5 [task.a] misfire.catch_up",
        "tasks.toml:6 [task.B]",
        "tasks.toml:6 [task.B]",
        "tasks.toml:7 [task.B] target.queue",
        "tasks.toml:11 extra",
    ]


def test_a_line_is_found_behind_a_long_text() -> None:
    text = '[task.a]\nresolve = { source = "s", sql = """\noverlap = 1\n[task.b]\n""" }\n' + S + T + 'overlap = "x"\n'

    [line] = lines_of(text)

    assert line.startswith("tasks.toml:8: [task.a] overlap:")


def test_broken_toml_names_line_and_column() -> None:
    assert lines_of("[task.a]\nx = = 1")[0].startswith("tasks.toml:2:5: this is not TOML: ")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")

    with pytest.raises(TaskFileError, match=r"none\.toml: it cannot be read: No such file"):
        read_task_file(tmp_path / "none.toml")
    with pytest.raises(TaskFileError, match=r"latin\.toml: this is not UTF-8 text"):
        read_task_file(tmp_path / "latin.toml")


def test_one_name_is_given_up_to_one_task_only() -> None:
    text = "".join(f'[task.{name}]\n{S}{T}renamed_from = "old"\n' for name in "ab")

    assert [line.split(": ", 2)[2] for line in lines_of(text)] == ['"old" is claimed by 2 tasks. Leave it to one.'] * 2


def test_a_schedule_that_can_never_fire_passes_where_nobody_says_what_time_it_is() -> None:
    assert read_tasks("[task.a]\n" + T + 'schedule = { cron = "0 0 30 2 *" }').definitions


def test_a_task_as_json_is_refused_with_its_places() -> None:
    with pytest.raises(TaskFileError) as caught:
        definition_from_json("a", {"target": {"broker": "m", "queue": "q"}, "overlap": 5, "retry": {"attempts": "5"}})

    assert str(caught.value).splitlines() == [
        '[task.a]: it has no trigger. Write schedule = { cron = "0 9 * * *" }, or [[task.NAME.on]] with an event.',
        "[task.a] overlap: 5 is not known. Known: allow, skip, queue, replace.",
        '[task.a] retry.attempts: "5" is not a whole number.',
    ]


def test_null_in_json_is_as_good_as_absent() -> None:
    mapping = {"target": {"http": "http://x", "timeout": None}, "on": [{"event": "e"}], "schedule": None, "name": "a"}

    task = definition_from_json("a", mapping)

    assert task == Definition("a", HttpTarget("http://x"), on=(Subscription("e"),), resolve=EventResolver())


def test_json_has_the_keys_of_the_file_and_no_defaults() -> None:
    assert definition_to_json(HOOK) == {
        "target": {"http": "https://example.org/hook", "timeout": "3s", "concurrency": 5, "headers": {"x": "y"}},
        "on": [{"event": "order.paid"}],
    }


WORDS = st.text("abcxyz", min_size=1, max_size=8)
SPANS = st.timedeltas(timedelta(milliseconds=1), timedelta(days=400))
TARGETS = st.builds(BrokerTarget, WORDS, WORDS, WORDS, WORDS, WORDS | st.none()) | st.builds(
    HttpTarget, WORDS.map("https://{}".format), SPANS, st.integers(1, 1000), st.dictionaries(WORDS, WORDS, max_size=2)
)
PATTERNS = st.dictionaries(
    st.sampled_from(["id", "data"]), st.lists(st.integers() | WORDS | st.none() | st.booleans(), min_size=1), max_size=2
)
SCHEDULES = st.sampled_from([{"cron": "0 9 * * *", "zone": "Europe/Athens"}, {"every": "5m"}, {"rrule": "FREQ=DAILY"}])
DEFINITIONS = st.builds(
    Definition,
    name=WORDS,
    target=TARGETS,
    description=st.text(max_size=20),
    schedule=st.none() | SCHEDULES,
    on=st.lists(st.builds(Subscription, WORDS, PATTERNS, all=st.booleans()), max_size=2).map(tuple),
    resolve=st.builds(SqlResolver, WORDS, WORDS) | st.just(EventResolver()) | st.just(NoResolver()),
    misfire=st.builds(Misfire, SPANS, st.sampled_from(["none", "latest", "all"]), SPANS),
    overlap=st.sampled_from(["allow", "skip", "queue", "replace"]),
    expires=st.none() | SPANS,
    retry=st.builds(
        lambda attempts, backoff, spans: Retry(attempts, backoff, *sorted(spans)),
        st.integers(1, 100),
        st.sampled_from(["exponential", "fixed"]),
        st.tuples(SPANS, SPANS),
    ),
    renamed_from=st.none() | WORDS,
).filter(lambda one: one.schedule is not None or one.on)


@given(DEFINITIONS)
def test_a_task_reads_back_from_its_json(definition: Definition) -> None:
    assert definition_from_json(definition.name, definition_to_json(definition), now=NOW) == definition


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | WORDS,
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["target", "on", "event", "match", "schedule", "cron", "resolve", "sql", "retry", "x"]),
                inner,
            )
        ),
    ).filter(lambda value: isinstance(value, dict))
)
def test_any_json_is_read_or_refused_as_a_task(mapping: Any) -> None:
    with suppress(TaskFileError):
        definition_from_json("a", mapping, now=NOW)


def test_what_is_nested_without_end_is_refused() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]

    with pytest.raises(TaskFileError, match=r"^\[task\.a\]: it is nested too deeply"):
        definition_from_json("a", {"on": [{"event": "e", "match": {"data": {"a": deep}}}]})
    with pytest.raises(TaskFileError, match=r"tasks\.toml: it is nested too deeply"):
        read_tasks("x = " + "[" * 5000 + "]" * 5000)


CONFIG = Config(
    source={"billing": SourceConfig("sqlite:///b.db"), "app": SourceConfig("sqlite:///a.db")},
    broker={"main": BrokerConfig("amqp://h/")},
)


def test_names_that_the_configuration_has_are_passed() -> None:
    check_references([TRIAL, HOOK], CONFIG)


def test_names_that_the_configuration_lacks_are_told_all_at_once() -> None:
    sql = replace(TRIAL, resolve=SqlResolver("select 1", "crm"), target=BrokerTarget("mian", "q", envelope="jsno"))
    bare = replace(TRIAL, name="bare", target=BrokerTarget("main", "q", envelope="celery"))

    with pytest.raises(TaskFileError) as caught:
        check_references([sql, bare], CONFIG)

    assert str(caught.value).splitlines() == [
        'task "trial-ending" has no source "crm". Known sources: app, billing. Add [source.crm] to oncue.toml.',
        'task "trial-ending" has no broker "mian". Known brokers: main. Add [broker.mian] to oncue.toml.',
        'task "trial-ending" has no envelope "jsno". Did you mean "json"? Known: json, celery.',
        'task "bare": the celery envelope needs the name of its worker\'s task. '
        'Write task = "module.function" in the target.',
    ]


def test_the_examples_of_the_page_are_read() -> None:
    page = (Path(__file__).parent.parent / "docs" / "task-files.md").read_text(encoding="utf-8")

    tasks = [
        task
        for text in re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)
        for task in read_tasks(text, now=NOW).definitions
    ]

    assert [task.name for task in tasks] == ["trial-ending", "order-paid", "payroll"]
