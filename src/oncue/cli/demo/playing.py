"""Plays the demo: the story, what happens beside it, and the scoreboard at the end."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from math import inf
from pathlib import Path
from shlex import quote

from oncue import wall
from oncue.cli.demo import scoreboard
from oncue.cli.demo.screen import Screen, clock_text
from oncue.cli.demo.stage import PERIOD, REMINDER, TASKS, Missing, Stage
from oncue.cli.demo.story import ACTS, Story
from oncue.errors import OncueError, StoreUnavailable
from oncue.model import Run
from oncue.rules import states

LOOK = 0.1
ENDING = "oncue up ends in order, and both sides agree"


INTRODUCTION = """\
Beside Oncue there is a shop, with a database of its own in which trials begin and end, and a worker, a plain program
that takes webhooks and keeps its own log. Neither knows Oncue. All of it runs on this machine, for about half a minute.
"""


async def play(folder: Path, screen: Screen, *, once: bool) -> int:
    """Play the demo in a folder, and return its exit code: 0 when everything was seen."""
    async with Stage(folder, screen).open() as stage:
        screen.title("Oncue runs work on cue: at an exact time, or the moment something happens.")
        screen.text(f"{INTRODUCTION}\nThis is the task file that Oncue is given, {folder / 'tasks.toml'}:\n")
        screen.file(TASKS.replace("PORT", stage.worker_port))
        missing = await _tell(stage, once=once)
        _take_leave(stage, missing)
        if not once and not missing:
            await _go_on(stage)
    return 1 if missing else 0


async def _go_on(stage: Stage) -> None:
    """Go on until Ctrl-C."""
    stage.screen.text("\nIt goes on until you press Ctrl-C.\n")
    with suppress(asyncio.CancelledError):
        async with _alongside(stage):
            await stage.until(_never, within=inf, what="Ctrl-C")
    stage.screen.text("\nEnding, in order.")


async def _tell(stage: Stage, *, once: bool) -> list[str]:
    """Play all acts and show the scoreboard; return what was not seen, with the reason of the first."""
    story = Story(stage)
    todo = dict(ACTS)
    try:
        async with _alongside(stage):
            for name, act in ACTS:
                await act(story)
                del todo[name]
            await _grow_quiet(stage)
        return await _show_score(stage, story, ends=once)
    except (Missing, OncueError) as error:
        first, *rest = [*todo, ENDING]
        return [f"{first}: {error}", *rest]


@asynccontextmanager
async def _alongside(stage: Stage) -> AsyncIterator[None]:
    """Let the shop live, and print what runs come to, meanwhile."""
    tasks = [asyncio.create_task(work) for work in (stage.shop.live(), _report(stage))]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended


async def _report(stage: Stage) -> None:
    """Print each run when it ends."""
    while True:
        with suppress(StoreUnavailable):
            for run in await stage.runs() if stage.has_store else ():
                if run.id not in stage.reported and run.state in states.ends("run"):
                    stage.reported.add(run.id)
                    stage.screen.say("oncue", _summary(stage, run))
        await asyncio.sleep(LOOK)


def _summary(stage: Stage, run: Run) -> str:
    lines = stage.log.of_run(run.uuid)
    first = min(line.at for line in lines) - run.due_at if lines else timedelta()
    late = f"{first / timedelta(milliseconds=1):.0f} ms" if first < PERIOD else f"{first.total_seconds():.1f} s"
    dead = f", {run.dead} dead" if run.dead else ""
    sent = f"{run.confirmed} of {run.resolved} taken by the worker{dead}"
    match run.kind:
        case "schedule" if run.state in ("done", "partial"):
            how = "caught up, " if run.caught_up else ""
            return f"{run.task_name}, due {clock_text(run.due_at)}: {sent}; {how}the first after {late}"
        case "event" if run.event and lines:
            return f"{run.task_name} for {run.event.key}, by an event: taken after {late}"
        case "requeue":
            return f"{run.task_name}, requeued: {sent}"
    return f"{run.task_name}, due {clock_text(run.due_at)}: {run.state}, {run.reason}"


async def _grow_quiet(stage: Stage) -> None:
    """Return at a moment between two due times when all that was begun has ended."""

    async def quiet() -> bool:
        runs = await stage.runs()
        since_due = (wall.now() - (await stage.task(REMINDER)).created_at) % PERIOD
        is_between = PERIOD * 0.2 < since_due < PERIOD * 0.6
        return is_between and stage.shop.is_quiet and all(run.state in states.ends("run") for run in runs)

    await stage.until(quiet, within=15, what="all runs have ended")


async def _show_score(stage: Stage, story: Story, *, ends: bool) -> list[str]:
    until = wall.now()
    wrong = []
    if ends and (code := await stage.end_up()) != 0:
        wrong.append(f"oncue up was asked to end, and answered {code}")
    task = story.task
    evidence = scoreboard.Evidence(
        log=stage.log.read(),
        runs=await stage.runs(),
        ledger=await stage.ledger(task),
        scheduled_id=task.id,
        since=task.created_at,
        until=until,
        period=PERIOD,
        told=stage.shop.told,
    )
    score = scoreboard.count(evidence)
    stage.screen.title("Scoreboard, checked against the worker's own log")
    stage.screen.table(score.rows())
    return [*wrong, *score.wrong]


def _take_leave(stage: Stage, missing: list[str]) -> None:
    """Say what was not seen, or what to type next."""
    screen = stage.screen
    if missing:
        screen.title("Not everything was seen. Missing:")
        for what in missing:
            screen.text(f"  - {what}")
        screen.text(f"\nWhat Oncue said stands in {stage.folder / 'oncue.log'}.")
        return
    screen.title("Everything was seen. Its store is still there; ask it something:")
    for command in _next_commands(stage):
        screen.text(f"  {command}")


def _next_commands(stage: Stage) -> list[str]:
    """Return commands that work as they are, typed where the demo was."""
    ask = f"{_program()} --config {quote(str(stage.folder / 'oncue.toml'))}"
    return [f"{ask} why {REMINDER}", f"{ask} failures show {stage.letter_uuid}", f"{ask} next {REMINDER}"]


def _program() -> str:
    """Return how this `oncue` is called: by its name where the shell finds it, else by its place."""
    here = Path(sys.executable).parent / "oncue"
    if not here.exists():
        return f"{quote(sys.executable)} -m oncue"
    if (found := shutil.which("oncue")) and Path(found).resolve() == here.resolve():
        return "oncue"
    return quote(str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here))


async def _never() -> None:
    return None
