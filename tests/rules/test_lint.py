"""Each finding, where it is said and where it is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from oncue.definition import Calendar, Definition, HttpTarget, Misfire
from oncue.rules import lint, lint_together
from oncue.rules.lint import Finding

NOW = datetime(2026, 2, 1, tzinfo=UTC)
QUIET = {"cron": "7 9 * * *", "zone": "UTC"}
NEW_YORK = "America/New_York"
THERE = {"zone": NEW_YORK}


def definition(schedule: dict[str, Any] = QUIET, *, name: str = "one", **changes: Any) -> Definition:
    return Definition(name, HttpTarget("http://127.0.0.1:9/"), schedule=schedule, **changes)


def found(one: Definition, **known: Any) -> dict[str, Finding]:
    return {finding.code: finding for finding in lint.examine(one, {}, now=NOW, **known)}


def cron(text: str, zone: str = "UTC") -> dict[str, Any]:
    return {"cron": text, "zone": zone}


def test_a_plain_schedule_and_a_task_without_one_have_no_findings() -> None:
    assert found(definition()) == {}
    assert lint.examine(definition(None), {}, now=NOW) == []


SAID = [
    # code, severity, said of, not said of
    ("never-fires", "error", cron("0 9 30 2 *"), cron("0 9 28 2 *")),
    ("never-fires-again", "warning", {"at": "2026-01-31T00:00Z"}, {"at": "2026-02-02T00:00Z"}),
    ("far-away", "note", cron("0 9 29 2 *"), cron("0 9 28 2 *")),
    ("in-a-gap", "warning", cron("30 2 * * *", NEW_YORK), cron("30 3 * * *", NEW_YORK)),
    ("in-a-gap", "warning", cron("30 2 * * *", NEW_YORK), cron("30 2 * * *", "Asia/Tokyo")),
    ("in-a-gap", "warning", {"every": "1d", "anchor": "2026-01-01T02:30", "zone": NEW_YORK}, {"every": "24h"}),
    ("lost-in-a-gap", "warning", cron("*/30 2 * * *", NEW_YORK), cron("*/30 * * * *", NEW_YORK)),
    ("lost-in-a-gap", "warning", cron("0 */2 * * *", "Europe/Berlin"), cron("0 * * * *", "Europe/Berlin")),
    ("runs-twice", "warning", cron("*/30 1 * * *", NEW_YORK), cron("*/30 * * * *", NEW_YORK)),
    ("runs-twice", "warning", cron("*/30 1 * * *", NEW_YORK), cron("0,30 1 * * *", NEW_YORK)),
    ("in-a-repeat", "note", cron("30 1 * * *", NEW_YORK), cron("30 1 * * *", "Asia/Tokyo")),
    ("in-a-repeat", "note", cron("30 1 * * *", NEW_YORK), {"every": "24h", "anchor": "2026-01-01T05:30Z", **THERE}),
    ("no-zone", "note", {"cron": "0 9 * * *"}, cron("0 9 * * *")),
    ("no-zone", "note", {"cron": "5 * * * mon"}, {"cron": "5 * * * *"}),
    ("no-zone", "note", {"every": "1d"}, {"every": "4h"}),
    ("either-day", "warning", cron("7 9 13 * fri"), cron("7 9 * * fri")),
    ("either-day", "warning", cron("7 9 13 * fri"), cron("7 9 */2 * fri")),
    ("skips-months", "warning", cron("7 9 31 * *"), cron("7 9 L * *")),
    ("skips-months", "warning", cron("7 9 30,31 * *"), cron("7 9 31 1,3 *")),
    ("uneven-step", "warning", cron("*/45 * * * *"), cron("*/15 * * * *")),
    ("uneven-step", "warning", cron("3 */5 * * *"), cron("3 */6 * * *")),
    ("uneven-step", "warning", cron("*/45 * * * *"), cron("0,45 * * * *")),
    ("uneven-step", "warning", cron("7 9 */2 * *"), cron("7 9 2 * *")),
    ("burst", "warning", cron("* 9 * * *"), cron("* 9-17 * * *")),
    ("burst", "warning", cron("* 7 9 * * *"), cron("0 7 9 * * *")),
    ("on-the-hour", "note", cron("@hourly"), cron("H * * * *")),
    ("on-the-hour", "note", cron("@daily"), cron("0 0 * * mon")),
    ("on-the-hour", "note", cron("0 * * * *"), cron("5 * * * *")),
    ("drifts", "note", {"every": "7h"}, {"every": "6h"}),
    ("drifts", "warning", {"every": "24h", "zone": "Europe/Athens"}, {"every": "1d", "zone": "Europe/Athens"}),
    ("drifts", "warning", {"every": "48h", "zone": "Europe/Athens"}, {"every": "24h", "zone": "Asia/Tokyo"}),
    ("may-be-lost", "note", cron("7 9 * * mon"), cron("7 9 * * mon,thu")),
]  # fmt: skip


@pytest.mark.parametrize(("code", "severity", "said_of", "not_said_of"), SAID)
def test_a_finding_on_a_schedule_is_said_where_it_is_true_and_only_there(
    code: str, severity: str, said_of: dict[str, Any], not_said_of: dict[str, Any]
) -> None:
    said = found(definition(said_of))

    assert code in said, sorted(said)
    assert said[code].severity == severity
    assert said[code].place[:3] in (("task", "one", "schedule"), ("task", "one", "misfire"))
    assert code not in found(definition(not_said_of))


def test_a_time_in_a_gap_is_told_with_what_happens_and_when_again() -> None:
    said = found(definition(cron("30 2 * * *", NEW_YORK)))["in-a-gap"]

    told = "on 2026-03-08, 02:30 is skipped by the clocks of America/New_York, so it runs at 03:00"
    assert said.text.startswith(f"{told}; the same on 2027-03-14.")


def test_what_clocks_do_is_not_told_where_the_zone_has_its_change_another_time() -> None:
    assert "in-a-gap" not in found(definition(cron("30 2 8 3 *", "Europe/Athens")))


@pytest.mark.parametrize(
    ("overlap", "words"),
    [
        ("skip", "4 of 5 are skipped"),
        ("queue", "stays behind"),
        ("replace", "replaced before it ends"),
        ("allow", "about 5 run at once"),
    ],
)
def test_runs_that_are_slower_than_they_are_due_are_told_by_the_overlap(overlap: str, words: str) -> None:
    minutely = definition(cron("* * * * *"), overlap=overlap, expires=timedelta(minutes=5))

    said = found(minutely, takes=timedelta(minutes=5))

    assert words in said["slower-than-due"].text
    assert "slower-than-due" not in found(minutely, takes=timedelta(minutes=1))
    assert "slower-than-due" not in found(minutely)


def test_overlap_allow_with_nothing_that_ends_runs_is_told() -> None:
    minutely = cron("* * * * *")

    assert "unbounded" in found(definition(minutely, overlap="allow"))
    assert "unbounded" not in found(definition(minutely, overlap="allow", expires=timedelta(minutes=5)))
    assert "unbounded" not in found(definition(minutely))
    assert "unbounded" not in found(definition(cron("*/5 * * * *"), overlap="allow"))


def test_a_grace_that_covers_several_times_is_told() -> None:
    minutely = cron("* * * * *")

    said = found(definition(minutely, misfire=Misfire(grace=timedelta(minutes=10))))

    assert "up to 11 times count as on time" in said["grace-covers-several"].text
    assert "grace-covers-several" not in found(definition(minutely))


def test_catching_up_more_than_a_few_hundred_runs_is_told() -> None:
    minutely = cron("* * * * *")

    said = found(definition(minutely, misfire=Misfire(catch_up="all")))

    assert "1,440 runs" in said["catch-up-flood"].text
    assert "catch-up-flood" not in found(definition(minutely, misfire=Misfire(catch_up="all", max=10)))
    assert "catch-up-flood" not in found(definition(minutely))
    assert "catch-up-flood" not in found(definition(QUIET, misfire=Misfire(catch_up="all")))


def test_a_weekly_time_that_would_be_caught_up_or_shall_not_be_is_not_told_as_lost() -> None:
    weekly = cron("7 9 * * mon")

    assert "may-be-lost" not in found(definition(weekly, misfire=Misfire(max_age=timedelta(days=7))))
    assert "may-be-lost" not in found(definition(weekly, misfire=Misfire(catch_up="none")))


def test_an_expiry_within_the_grace_is_told() -> None:
    assert "expires-within-grace" in found(definition(expires=timedelta(seconds=30)))
    assert "expires-within-grace" not in found(definition(expires=timedelta(minutes=1)))


@pytest.mark.parametrize("key", ["jitter", "spread"])
def test_a_pace_that_reaches_the_next_time_is_told(key: str) -> None:
    minutely = cron("* * * * *")

    said = found(definition({**minutely, key: "5m"}))

    assert said["pace-too-long"].place == ("task", "one", "schedule", key)
    assert "pace-too-long" not in found(definition({**minutely, key: "30s"}))


def test_an_expiry_within_the_jitter_is_told() -> None:
    schedule, expires = {**QUIET, "jitter": "10m"}, timedelta(minutes=5)

    assert "expires-within-jitter" in found(definition(schedule, expires=expires))
    assert "expires-within-jitter" not in found(definition(schedule, expires=timedelta(minutes=15)))


HOLIDAYS = Calendar("holidays", dates={date(2026, 3, 8): "", date(2027, 3, 14): ""}, known_until=date(2027, 12, 31))
BUSINESS = Calendar("business", weekdays=("mon", "tue", "wed", "thu", "fri"))


def found_on(schedule: dict[str, Any], *calendars: Calendar) -> dict[str, Finding]:
    known = {one.name: one for one in calendars}
    return {one.code: one for one in lint.examine(definition(schedule), known, now=NOW)}


def test_a_calendar_that_nobody_knows_is_an_error() -> None:
    schedule = {**QUIET, "only_on": "business"}

    assert found_on(schedule)["unknown-calendar"].severity == "error"
    assert found_on(schedule, BUSINESS) == {}


def test_a_calendar_that_leaves_no_day_is_an_error_that_says_so() -> None:
    said = found_on({**cron("7 9 * * sat,sun"), "only_on": "business"}, BUSINESS)

    assert said["never-fires"].severity == "error"
    assert "its calendar allows no day on which it is due" in said["never-fires"].text


@pytest.mark.parametrize(("until", "is_said"), [(date(2026, 4, 1), True), (date(2026, 4, 2), False), (None, False)])
def test_a_calendar_that_ends_within_sixty_days_is_told(until: date | None, is_said: bool) -> None:
    calendar = replace(HOLIDAYS, known_until=until)

    assert ("calendar-ends" in found_on({**QUIET, "except_on": "holidays"}, calendar)) is is_said


def test_a_change_of_clocks_on_a_day_that_is_left_out_is_not_told() -> None:
    night = cron("30 2 * * *", NEW_YORK)

    assert "in-a-gap" not in found_on({**night, "only_on": "business"}, BUSINESS)
    assert "in-a-gap" not in found_on({**night, "except_on": "holidays"}, HOLIDAYS)
    assert "in-a-gap" in found_on({**night, "except_on": "holidays"}, replace(HOLIDAYS, dates={}, weekdays=("mon",)))


@pytest.mark.parametrize("dst", [{"gap": "skip"}, {"gap": "after", "repeat": "first"}])
def test_what_a_schedule_says_of_clocks_itself_is_not_told(dst: dict[str, str]) -> None:
    assert found(definition({**cron("30 2 * * *", NEW_YORK), "dst": dst})) == {}


def test_each_part_of_a_union_is_looked_at() -> None:
    union = {"any": [cron("7 9 13 * fri"), cron("30 2 * * *", NEW_YORK)], "zone": "UTC"}

    assert {"either-day", "in-a-gap"} <= set(found(definition(union)))


def test_an_exclusion_that_takes_nothing_out_is_told() -> None:
    nothing = {**QUIET, "except": [{"cron": "0 0 25 12 *"}]}

    assert "excludes-nothing" in found(definition(nothing))
    assert "excludes-nothing" not in found(definition({**QUIET, "except": [{"cron": "* * 25 12 *"}]}))


def test_a_schedule_whose_end_is_over_never_fires_again() -> None:
    assert "never-fires-again" in found(definition({**QUIET, "start": "2025-01-01", "end": "2026-01-15"}))
    assert "never-fires-again" not in found(definition({**QUIET, "end": "2026-02-15"}))


def crowd(count: int, schedule: dict[str, Any]) -> list[Definition]:
    return [definition(schedule, name=f"t{number}", description=f"{number}") for number in range(count)]


def codes(definitions: list[Definition]) -> list[str]:
    return [one.code for one in lint_together.together(definitions, {}, now=NOW)]


def test_ten_tasks_at_one_second_are_a_crowd_and_are_told_once() -> None:
    schedule = cron("0 3 * * *")

    said = [one for one in lint_together.together(crowd(12, schedule), {}, now=NOW) if one.code == "crowded-second"]

    assert len(said) == 1
    assert "12 tasks are due at one second, first at 2026-02-01 03:00:00Z: t0, t1, t2 and 9 more" in said[0].text


@pytest.mark.parametrize(
    ("count", "schedule"),
    [
        (9, cron("0 3 * * *")),
        (12, cron("H H * * *")),
        (12, {**cron("0 3 * * *"), "jitter": "5m"}),
        (12, {"at": "2026-03-01T00:00Z"}),
    ],
)
def test_nine_tasks_or_those_that_are_spread_or_not_due_this_week_are_no_crowd(
    count: int, schedule: dict[str, Any]
) -> None:
    assert "crowded-second" not in codes(crowd(count, schedule))


def test_a_crowd_of_others_is_told_too() -> None:
    others = [definition(cron("0 5 * * *"), name=f"u{number}") for number in range(10)]

    assert codes(crowd(10, cron("0 3 * * *")) + others).count("crowded-second") == 2


def test_a_task_that_does_the_same_as_another_is_told() -> None:
    assert codes([definition(name="a"), definition(name="b", description="copied")]) == ["same-twice"]
    assert codes([definition(name="a"), definition(name="b", overlap="queue")]) == []
