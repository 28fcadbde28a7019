"""Cases from public trackers: each is asked of `next_after`, and through the front door of `oncue next --json`."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from oncue.cli import app
from oncue.rules import identity, times

CASES = json.loads(Path(__file__).with_name("time-cases.json").read_text(encoding="utf-8"))
KINDS = {"interval": "every"}


def spec_of(case: dict[str, Any]) -> dict[str, object]:
    return {KINDS.get(case["kind"], case["kind"]): case["spec"], "zone": case["zone"]}


def asked(case: dict[str, Any]) -> int:
    return len(case["expected"]) + bool(case.get("complete"))


def case_id(case: dict[str, Any]) -> str:
    return str(case["id"])


ANSWERED = [case for case in CASES if not case.get("reject")]
REFUSED = [case for case in CASES if case.get("reject")]


@pytest.mark.parametrize("case", ANSWERED, ids=case_id)
def test_a_case_is_answered_by_next_after(case: dict[str, Any]) -> None:
    trigger = times.read_trigger(spec_of(case))
    moment: datetime | None = datetime.fromisoformat(case["after"])

    found = []
    while moment is not None and len(found) < asked(case):
        moment = times.next_after(trigger, moment)
        if moment is not None:
            found.append(identity.time_text(moment))

    assert found == case["expected"]


@pytest.mark.parametrize("case", ANSWERED, ids=case_id)
def test_a_case_is_answered_backwards_and_counted_alike(case: dict[str, Any]) -> None:
    trigger = times.read_trigger(spec_of(case))
    expected = [datetime.fromisoformat(text) for text in case["expected"]]
    after = datetime.fromisoformat(case["after"])

    listed = times.times_between(trigger, after, expected[-1] if expected else after, 10)

    assert listed == expected
    assert all(times.previous_before(trigger, later) == earlier for earlier, later in pairwise(expected))
    if expected:
        counted = times.count_between(trigger, after, expected[-1])
        assert counted == (len(expected), expected[0], expected[-1])


@pytest.mark.parametrize("case", REFUSED, ids=case_id)
def test_a_case_that_can_never_fire_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(times.TriggerError):
        times.check(times.read_trigger(spec_of(case)), datetime.fromisoformat(case["after"]))


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_a_case_is_answered_by_the_command(case: dict[str, Any]) -> None:
    options = [word for kind, text in spec_of(case).items() for word in (f"--{kind}", str(text))]

    result = CliRunner().invoke(
        app, ["next", *options, "--after", case["after"], "-n", str(asked(case) or 1), "--json"]
    )

    if case.get("reject"):
        assert result.exit_code == 2
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1
    else:
        assert result.exit_code == 0, result.stderr
        assert result.stdout == json.dumps({"times": case["expected"]}) + "\n"
