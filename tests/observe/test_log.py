"""Log lines: fixed words, one line each, and nothing of an entity's data."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from oncue.model import Change
from oncue.observe import log


@pytest.fixture
def lines(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    root, ours = logging.root, logging.getLogger("oncue")
    before = root.handlers, root.level, ours.level
    file = io.StringIO()
    log.set_up_logging(getattr(request, "param", "text"), "info", file=file)
    yield file
    root.handlers, root.level, ours.level = before


RUN = Change("run", "8f3", "done", None, {"task": "remind", "cause": "schedule", "late": 0.83, "sent": 412, "dead": 1})


def test_a_run_that_ended_is_one_line_with_its_figures(lines: io.StringIO) -> None:
    log.tell_changes(RUN)

    assert re.fullmatch(
        r"\d\d:\d\d:\d\d\.\d{3}Z run finished task=remind run=8f3 late=0\.8s cause=schedule sent=412 dead=1\n",
        lines.getvalue(),
    )


@pytest.mark.parametrize("lines", ["json"], indirect=True)
def test_for_machines_it_is_one_object(lines: io.StringIO) -> None:
    log.tell_changes(RUN)

    told = json.loads(lines.getvalue())
    assert (told["event"], told["level"], told["sent"]) == ("run finished", "info", 412)
    assert told["time"].endswith("Z")


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("plain", "reason=plain"),
        ("two words", 'reason="two words"'),
        ('say "no"', 'reason="say \\"no\\""'),
        ("a\nb level=error", 'reason="a\\\\nb level=error"'),
        ("\x1b[31mred\x07", "reason=\\x1b[31mred\\x07"),
        ("\u202eright to left", 'reason="\\\\u202eright to left"'),
        ("x" * 1000, f"reason={'x' * 500}…"),
    ],
)
def test_what_a_reason_holds_cannot_break_the_line(lines: io.StringIO, reason: str, shown: str) -> None:
    log.tell_changes(Change("run", "8f3", "failed", reason, {"task": "remind"}))

    assert shown in lines.getvalue()
    assert lines.getvalue().count("\n") == 1


def test_a_dead_letter_tells_neither_its_reason_nor_its_urls_secrets(lines: io.StringIO) -> None:
    facts = {"task": "remind", "queue": "https://user:canary@host.example/hook?token=canary"}

    log.tell_changes(Change("dead_letter", "1c", "open", "HTTP 422: canary is no address", facts))

    assert "dead letter opened task=remind dead_letter=1c queue=host.example" in lines.getvalue()
    assert "canary" not in lines.getvalue()


@pytest.mark.parametrize("change", [Change("run", "", "due", facts={"count": 3}), Change("event", "", "accepted")])
def test_what_only_begins_is_not_told(lines: io.StringIO, change: Change) -> None:
    log.tell_changes(change)

    assert lines.getvalue() == ""


def test_a_dead_letter_for_what_is_no_url_is_told_all_the_same(lines: io.StringIO) -> None:
    log.tell_changes(Change("dead_letter", "8f3", "open", None, {"task": "remind", "queue": "http://[::1/hooks"}))

    assert "dead letter opened task=remind dead_letter=8f3" in lines.getvalue()


def test_a_failure_keeps_its_trace_beneath_its_line(lines: io.StringIO) -> None:
    log.log.error("component failed", component="clock", exc_info=ValueError("no\x1b way"))

    first, *trace = lines.getvalue().splitlines()
    assert first.endswith("component failed component=clock level=error")
    assert trace[-1] == "    ValueError: no\\x1b way"


def test_libraries_are_heard_from_warnings_on(lines: io.StringIO) -> None:
    logging.getLogger("uvicorn.error").info("quiet")
    logging.getLogger("uvicorn.error").warning("loud")

    assert lines.getvalue().endswith("Z loud level=warning\n")


def test_a_host_that_sets_nothing_up_sees_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    log.tell_changes(RUN)

    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("driver", ["pika.channel", "asyncpg.pool"])
def test_what_drivers_tell_of_each_try_is_not_repeated(lines: io.StringIO, driver: str) -> None:
    logging.getLogger(driver).error("it failed again")

    assert lines.getvalue() == ""
