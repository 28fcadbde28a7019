"""Plans: what applying a task file will change, in its words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from oncue.definition import (
    BrokerTarget,
    Definition,
    EventResolver,
    HttpTarget,
    Misfire,
    NoResolver,
    SqlResolver,
    Subscription,
)
from oncue.plan import plan

TRIAL = Definition(
    name="trial-ending",
    schedule={"cron": "0 9 * * mon-fri", "zone": "Europe/Athens"},
    on=(Subscription("trial.shortened", match={"data": {"days_left": [{"numeric": ["<=", 3]}]}}, all=True),),
    resolve=SqlResolver("select id as key from trial", "app"),
    target=BrokerTarget("main", "celery", envelope="celery", task="emails.trial_ending"),
    misfire=Misfire(timedelta(minutes=10), "all", timedelta(days=2)),
    expires=timedelta(hours=2),
    renamed_from="trial-ends",
)
HOOK = Definition(
    name="hook",
    target=HttpTarget("https://example.org/hook"),
    on=(Subscription("order.paid"),),
    resolve=EventResolver(),
)


def test_a_plan_says_what_changes_field_by_field() -> None:
    changed = replace(
        TRIAL,
        renamed_from=None,
        schedule={"cron": "0 8 * * *"},
        misfire=Misfire(),
        resolve=NoResolver(),
        expires=None,
        on=(),
    )

    found = plan({"trial-ending": TRIAL, "hook": HOOK, "old": HOOK}, [changed, HOOK, replace(HOOK, name="new")])

    assert found.lines() == [
        "~ trial-ending: changed",
        '    schedule.cron: "0 9 * * mon-fri" → "0 8 * * *"',
        '    schedule.zone: "Europe/Athens" → none',
        '    on[0]: {"event": "trial.shortened", "match": {"data": {"days_left": [{"numeric": ["<=", 3]}]}}, '
        '"all": true} → none',
        '    resolve.sql: "select id as key from trial" → none',
        '    resolve.source: "app" → none',
        '    misfire.grace: "10m" → "1m"',
        '    misfire.catch_up: "all" → "latest"',
        '    misfire.max_age: "2d" → "1d"',
        '    expires: "2h" → none',
        "    resolve.event: none → false",
        "+ new: created",
        "1 created, 1 changed, 1 unchanged",
        "Not in the file, and left as they are: old. --prune removes them.",
    ]


def test_a_plan_that_prunes_removes_what_the_file_lacks() -> None:
    found = plan({"hook": HOOK, "old": TRIAL}, [HOOK], prune=True)

    assert found.lines() == ["- old: removed", "1 removed, 1 unchanged"]
    assert found.left == ()


def test_a_renamed_task_is_not_removed() -> None:
    new = replace(HOOK, name="new", renamed_from="hook", overlap="allow")

    found = plan({"hook": HOOK}, [new], prune=True)

    assert found.lines() == ["> new: renamed", "    name: hook → new", '    overlap: "skip" → "allow"', "1 renamed"]


def test_a_plan_of_what_is_there_already_is_empty() -> None:
    found = plan({"hook": HOOK}, [replace(HOOK, renamed_from="older")], prune=True)

    assert found.is_empty
    assert found.lines() == ["1 unchanged"]


def test_a_value_without_an_end_is_cut_in_a_plan() -> None:
    found = plan({"hook": HOOK}, [replace(HOOK, description="x" * 5000)]).lines()

    assert len(found[1]) < 400
    assert "… (5,002 characters)" in found[1]
