"""What `oncue next` and `oncue show` say of a followed schedule: where it stands, and what its data answers now."""

from __future__ import annotations

from oncue.app import Oncue
from oncue.cli.output import show_time
from oncue.errors import AdapterError
from oncue.model import TaskId
from oncue.store import followed
from oncue.store.followed import Following


async def remarks_of(oncue: Oncue, task_id: TaskId) -> list[str]:
    """Return lines for people on the followed schedule of a task, none where it has none. The data is asked now."""
    following = await oncue.store.read(followed.of, task_id)
    if following is None:
        return []
    return [*standing(following), await _answer_now(oncue, following)]


def standing(following: Following) -> list[str]:
    """Return where a followed schedule stands by the store."""
    lines = [f"Horizon: {show_time(following.horizon)}. Whoever was due by then has had a window."]
    if following.failing_since is not None:
        since = show_time(following.failing_since)
        lines.append(f"It cannot be asked since {since}: {following.reason}")
    if following.asked_at is None:
        return [*lines, "It has not been asked yet."]
    answer = show_time(following.answer_at) if following.answer_at else "nobody is due"
    return [*lines, f"Last asked: {show_time(following.asked_at)}. The answer was: {answer}."]


async def _answer_now(oncue: Oncue, following: Following) -> str:
    try:
        answer = await oncue.follow.ask(following)
    except AdapterError as error:
        return f"Asked now, it fails: {error}"
    return f"Asked now, it answers: {show_time(answer) if answer else 'nobody is due'}."
