"""The demo's story: act by act, each of which waits until it has seen what it is about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from oncue import wall
from oncue.cli.demo.children import Webhook
from oncue.cli.demo.screen import clock_text
from oncue.cli.demo.stage import PERIOD, REMINDER, Missing, Stage
from oncue.model import DeadLetter, Run, Task
from oncue.rules import states
from oncue.rules.firing import LedgerEntry

OUTAGE: Final = 4  # due times
MOMENT: Final = timedelta(milliseconds=1)


class Story:
    """What the acts hand on to each other."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.screen = stage.screen
        self.task: Task
        self.seconds_to_start = 1.0
        self.letter: DeadLetter
        self.cut_short: Run
        self.before: list[Webhook]
        self.missed: list[datetime]

    async def fires(self) -> None:
        """Start Oncue, and see the schedule fire for everybody on trial."""
        stage, screen = self.stage, self.screen
        screen.title("1  A schedule fires, and asks at that moment who is concerned")
        with screen.waiting("oncue up is starting"):
            self.seconds_to_start = await stage.start_up()
        self.task = await stage.task(REMINDER)
        screen.say("oncue", f"is up, started with `oncue up tasks.toml` (process {stage.pid})")
        with screen.waiting("the first reminder is due two seconds after the task was made"):
            run = await self._next_done(self.task.created_at)
        people = {line.key for line in stage.log.of_run(run.uuid)}
        if len(people) != run.confirmed:
            raise Missing(f"{run.confirmed} were confirmed, and {len(people)} are in the worker's log")
        screen.tell(f"nobody was put on a list beforehand: the shop was asked at that moment, and named {len(people)}")

    async def leaves_out(self) -> None:
        """See somebody cancel between two firings."""
        stage, screen = self.stage, self.screen
        screen.title("2  Somebody cancels between two firings")
        before = await self._next_done(wall.now() - PERIOD)
        gone = stage.shop.on_trial()[4]
        stage.shop.cancel(gone)
        cancelled_at = wall.now()
        screen.say("shop", f"{gone} cancels")
        after = await self._next_done(cancelled_at)
        if gone.key not in self._keys(before) or gone.key in self._keys(after):
            raise Missing(f"{gone} should have a reminder of {before.due_at} and none of {after.due_at}")
        there, then = clock_text(before.due_at), clock_text(after.due_at)
        screen.tell(f"{gone} was reminded at {there}, and is left out at {then}")

    async def reacts(self) -> None:
        """See an event fire a task at once."""
        stage, screen = self.stage, self.screen
        screen.title("3  An event fires a task at once")
        begun = wall.now()
        customer = await stage.shop.join()
        screen.say("shop", f"{customer} joins: POST /v1/events, trial.started")

        async def arrives() -> Webhook | None:
            lines = [line for line in stage.log.read() if line.path == "/welcome" and line.key == customer.key]
            return lines[0] if lines else None

        line = await stage.until(arrives, within=10, what=f"the welcome for {customer} arrives")
        took = (line.at - begun) / MOMENT
        if took > 1000:
            raise Missing(f"it took {took:.0f} ms from the event to the worker")
        screen.tell(f"{took:.0f} ms from the shop's event to the worker: nothing polls in between")

    async def buries(self) -> None:
        """See the worker refuse somebody until the message is a dead letter."""
        stage, screen = self.stage, self.screen
        screen.title("4  The worker refuses somebody, and nobody else waits for it")
        refused = stage.shop.on_trial()[7]
        stage.order(f"refuse {refused.key}")
        screen.say("worker", f"refuses {refused} from now on: the mailbox is full")

        async def dead() -> DeadLetter | None:
            return next((one for one in await stage.letters() if one.what.key == refused.key), None)

        with screen.waiting("the message is tried three times"):
            self.letter = await stage.until(dead, within=15, what=f"the reminder for {refused} is a dead letter")
        stage.letter_uuid = str(self.letter.uuid)
        stage.order(f"accept {refused.key}")
        tries = [line for line in stage.log.read() if line.message == str(self.letter.what.message_id)]
        if len(tries) != 3 or any(line.accepted for line in tries):
            raise Missing(f"the worker's log has {len(tries)} tries of it, not three refusals")
        reason = self.letter.what.reason
        screen.say("oncue", f"dead letter for {refused} after {len(tries)} attempts: {reason}")
        screen.tell("it is kept with its attempts and its exact bytes, until a person decides")

    async def is_killed(self) -> None:
        """Kill Oncue between the first delivery of a page and its checkpoint."""
        stage, screen = self.stage, self.screen
        screen.title("5  kill -9, in the middle of a page")
        stage.order("slow 0.12")
        screen.say("worker", "is slow now; Oncue hands over 20 at a time and notes each page when it is through")
        begun = wall.now()

        async def in_second_page() -> Run | None:
            for run in reversed(await stage.runs()):
                if run.kind == "schedule" and run.due_at > begun and run.state == "running":
                    return run if run.resolved and len(stage.log.of_run(run.uuid)) > run.resolved + 2 else None
            return None

        with screen.waiting("a page is being sent"):
            run = await stage.until(in_second_page, within=20, what="a page is half sent")
        pid = stage.pid
        stage.kill_up()
        screen.say("you", f"kill -9 {pid}")
        self.before = list(stage.log.of_run(run.uuid))
        self.cut_short = next(one for one in await stage.runs() if one.id == run.id)
        resolved, arrived = self.cut_short.resolved, len(self.before)
        if self.cut_short.state != "running" or arrived <= resolved:
            raise Missing(f"the page was over before the kill: {resolved} noted, {arrived} arrived")
        screen.tell(
            f"one page of {resolved} is noted; of the next, {arrived - resolved} have arrived, and none is noted"
        )

    async def stays_down(self) -> None:
        """Let several due times pass, and start Oncue again between two of them."""
        stage, screen = self.stage, self.screen
        screen.title(f"6  It stays down over {OUTAGE} due times, and is started again")
        stage.order("quick")
        first = self.cut_short.due_at + PERIOD
        self.missed = [first + PERIOD * step for step in range(OUTAGE)]
        while self.missed[-1] < wall.now() - PERIOD * 0.5:
            self.missed.append(self.missed[-1] + PERIOD)
        for due in self.missed:
            with screen.waiting(f"nobody is there; the next reminder is due at {clock_text(due)}"):
                await _sleep_until(due)
            screen.say("oncue", f"is down. A reminder was due at {clock_text(due)}")
        ready_at = self.missed[-1] + PERIOD * 0.6
        with screen.waiting("it is to be started between two due times"):
            await _sleep_until(ready_at - timedelta(seconds=self.seconds_to_start))
            await stage.start_up()
        screen.say("you", "oncue up tasks.toml")

    async def catches_up(self) -> None:
        """See what was missed: caught up as the policy says, and written down."""
        screen, policy = self.screen, self.task.definition.misfire
        screen.title("7  What was missed")

        async def decided() -> tuple[Run, list[LedgerEntry]] | None:
            ledger = [one for one in await self.stage.ledger(self.task) if one.first_due_at >= self.missed[0]]
            runs = [one for one in await self.stage.runs() if one.task_id == self.task.id]
            late = [one for one in runs if one.due_at >= self.missed[0] and one.kind == "schedule"]
            return (late[0], ledger) if late and late[0].state in states.ends("run") and ledger else None

        run, ledger = await self.stage.until(decided, within=20, what="the missed times are decided")
        coalesced = sum(entry.count for entry in ledger)
        first, last = min(entry.first_due_at for entry in ledger), max(entry.last_due_at for entry in ledger)
        wanted = (run.due_at - self.missed[0]) // PERIOD
        if policy.catch_up != "latest" or coalesced != wanted or first != self.missed[0] or run.state != "done":
            raise Missing(
                f"{wanted} times were to be coalesced, and the ledger has {coalesced}; the run is {run.state}"
            )
        screen.tell('the task file says catch_up = "latest": of the times missed, only the last one runs')
        screen.tell(f"the ledger says: {clock_text(first)} to {clock_text(last)}, {coalesced} times, coalesced")
        how = "caught up" if run.caught_up else "on time"
        screen.tell(f"the run that stands for them was due at {clock_text(run.due_at)} ({how})")

    async def repeats(self) -> None:
        """See the page that was cut short go out again, under the same message ids."""
        stage, screen = self.stage, self.screen
        screen.title("8  The page that was cut short")

        async def done() -> Run | None:
            runs = [one for one in await stage.runs() if one.id == self.cut_short.id]
            return runs[0] if runs[0].state == "done" else None

        with screen.waiting("the run is taken up where its last page was noted"):
            run = await stage.until(done, within=20, what="the run that was cut short is done")
        lines = stage.log.of_run(run.uuid)
        ids = {line.message for line in lines}
        again = [line for line in self.before if [one.message for one in lines].count(line.message) > 1]
        noted = {line.message for line in self.before} - {line.message for line in again}
        if len(ids) != len({line.key for line in lines}) or not again or len(noted) != self.cut_short.resolved:
            raise Missing(f"{len(again)} of {len(self.before)} came again, under {len(ids)} ids in all")
        repeated = len(lines) - len(ids)
        screen.tell(f"{repeated} reminders came a second time, each under the id that it had the first time")
        screen.tell(
            f"the {len(noted)} of the page before were not sent again; {run.confirmed} of {run.resolved} arrived"
        )

    async def recovers(self) -> None:
        """Requeue the dead letter, and see it arrive."""
        stage, screen = self.stage, self.screen
        screen.title("9  The dead letter is requeued")
        uuid, message = str(self.letter.uuid), str(self.letter.what.message_id)
        screen.say("you", f"oncue failures requeue {uuid}")

        async def recovered() -> Webhook | None:
            letter = next(one for one in await stage.letters() if one.id == self.letter.id)
            lines = [line for line in stage.log.read() if line.message == message and line.accepted]
            return lines[0] if lines and letter.state == "recovered" else None

        with screen.waiting("the shop is asked about this customer again, and the message goes out"):
            await stage.command("failures", "requeue", uuid)
            line = await stage.until(recovered, within=15, what="the dead letter is recovered")
        screen.say("worker", f"takes the reminder for {line.key}")
        screen.tell(f"it arrived under the message id that was refused: {message}")

    async def _next_done(self, after: datetime) -> Run:
        """Wait for the first scheduled run due after a moment, until everything of it has ended."""

        async def done() -> Run | None:
            due = [run for run in await self.stage.runs() if run.kind == "schedule" and run.due_at > after]
            return due[0] if due and due[0].id in self.stage.reported else None

        run = await self.stage.until(done, within=15, what="a scheduled run is done")
        if run.state != "done":
            raise Missing(f"the run due at {clock_text(run.due_at)} is {run.state}: {run.reason}")
        return run

    def _keys(self, run: Run) -> set[str]:
        return {line.key for line in self.stage.log.of_run(run.uuid)}


ACTS: Final[tuple[tuple[str, Callable[[Story], Awaitable[None]]], ...]] = (
    ("a scheduled task fires", Story.fires),
    ("somebody cancels between two firings and is left out of the second", Story.leaves_out),
    ("an event fires a task at once", Story.reacts),
    ("the worker refuses somebody until it is a dead letter", Story.buries),
    ("oncue up is killed in the middle of a page", Story.is_killed),
    ("it stays down over several due times and is started again", Story.stays_down),
    ("it catches up as the policy says", Story.catches_up),
    ("the page is repeated under the same message ids", Story.repeats),
    ("the dead letter is requeued and arrives", Story.recovers),
)


async def _sleep_until(moment: datetime) -> None:
    await asyncio.sleep(max((moment - wall.now()).total_seconds(), 0))
