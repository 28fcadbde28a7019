"""Task files with followed schedules: what is read, written back, and refused at its line."""

from __future__ import annotations

import pytest

from oncue.config import Config, SourceConfig
from oncue.definition import SqlResolver
from oncue.errors import TaskFileError
from oncue.plan import plan
from oncue.taskfile import check_references, definition_from_json, definition_to_json, read_tasks

NEXT = '{ sql = "select min(starts_at) from appointment where starts_at > :after", source = "app" }'
HEAD = '[task.remind]\ntarget = { http = "http://127.0.0.1:9/" }\n'
RESOLVE = 'resolve = { sql = "select id as key, starts_at as due_at from appointment", source = "app" }\n'
TOUCH = '[[task.remind.on]]\nevent = "appointment.moved"\ndo = "touch"\n'
WHOLE = (
    f'{HEAD}schedule = {{ next = {NEXT}, recheck = "1m", lookback = "1h", zone = "Europe/Athens" }}\n{RESOLVE}\n{TOUCH}'
)


def test_a_followed_task_is_read_as_it_is_written() -> None:
    (task,) = read_tasks(WHOLE).definitions

    assert task.schedule is not None
    assert task.schedule["next"]["source"] == "app"
    assert (task.schedule["recheck"], task.schedule["zone"]) == ("1m", "Europe/Athens")
    assert isinstance(task.resolve, SqlResolver)
    assert [one.do for one in task.on] == ["touch"]


def test_it_comes_back_the_same_through_json() -> None:
    (task,) = read_tasks(WHOLE).definitions

    assert definition_from_json("remind", definition_to_json(task)) == task


def test_a_plan_shows_which_part_of_it_changes() -> None:
    (old,) = read_tasks(WHOLE).definitions
    (new,) = read_tasks(WHOLE.replace('"1m"', '"5m"').replace("min(starts_at)", "min(ends_at)")).definitions

    details = plan({"remind": old}, [new]).tasks[0].details

    assert [detail.partition(":")[0] for detail in details] == ["schedule.next.sql", "schedule.recheck"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            WHOLE.replace(RESOLVE, ""),
            "[task.remind] resolve: a followed schedule needs to know who is due when. Write resolve = ",
        ),
        (WHOLE.replace(RESOLVE, "resolve = { event = true }\n"), "resolve: a followed schedule needs to know"),
        (
            WHOLE.replace(f"next = {NEXT}", 'cron = "* * * * *"').replace(', recheck = "1m", lookback = "1h"', ""),
            "8: [task.remind] on[0].do: only a followed schedule is touched. Write schedule = { next = … }.",
        ),
        (f"{HEAD}{TOUCH}", "5: [task.remind] on[0].do: only a followed schedule is touched."),
        (WHOLE + "all = true\n", "[task.remind] on[0].all: a touch concerns nobody in particular. Leave it out."),
        (WHOLE.replace('"touch"', '"cue"'), '"cue" does not work yet. Today it is "fire", "touch", or left out.'),
        (
            WHOLE.replace("recheck", "reckeck"),
            'schedule.reckeck: a followed schedule has no such key. Did you mean "recheck"',
        ),
        (WHOLE.replace('zone = "Europe/Athens"', 'cron = "* * * * *"'), "schedule.cron: a followed schedule has no"),
        (WHOLE.replace(NEXT, '"select 1"'), "3: [task.remind] schedule.next: 'select 1' is not a table."),
        (WHOLE.replace('"1h"', '"soon"'), 'schedule.lookback: "soon" is not a duration.'),
    ],
)
def test_what_does_not_fit_together_is_told_at_its_place(text: str, words: str) -> None:
    with pytest.raises(TaskFileError) as refused:
        read_tasks(text)

    assert words in str(refused.value)


def test_the_source_of_next_must_be_configured() -> None:
    tasks = read_tasks(WHOLE.replace(NEXT, NEXT.replace('"app"', '"crm"'))).definitions
    config = Config(source={"app": SourceConfig("sqlite:///app.db")})

    with pytest.raises(TaskFileError, match=r'task "remind" has no source "crm"\. Known sources: app\.'):
        check_references(tasks, config)

    check_references(read_tasks(WHOLE).definitions, config)
