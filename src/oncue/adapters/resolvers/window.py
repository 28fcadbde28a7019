"""A team's own query, narrowed to who is due in a window, page by page in the order of (due_at, key)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from oncue.adapters.resolvers import sql as query
from oncue.adapters.resolvers.moments import canonical, read_moment
from oncue.errors import ResolveError
from oncue.model import Key, Page

NO_DUE: Final = 'the query has no column "due_at": write `select id as key, starts_at as due_at, …`.'
DAY: Final = timedelta(days=1)
NO_TIME: Final = datetime.max.replace(microsecond=0, tzinfo=UTC)  # only to tell rows apart whose due_at is no time
BAD: Final = ""  # sorts before all times
INSIDE: Final = "q.due_at > :oncue_window_start and q.due_at <= :oncue_window_end"
# In SQLite a column may hold times in any spelling. Most rows are told to be outside by their first ten letters, or as
# numbers, before each spelling is read; rows with no time at all are in every window, to be rejected.
SQLITE_DUE: Final = "oncue_due(q.due_at)"
SQLITE_INSIDE: Final = f"""case
    when typeof(q.due_at) = 'text' and q.due_at glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'
        and julianday(substr(q.due_at, 1, 10)) is not null
        and (q.due_at < :oncue_day_before or q.due_at > :oncue_day_after) then false
    when typeof(q.due_at) in ('integer', 'real')
        and (q.due_at < :oncue_second_before or q.due_at > :oncue_second_after) then false
    else {SQLITE_DUE} = '{BAD}' or ({SQLITE_DUE} > :oncue_window_start and {SQLITE_DUE} <= :oncue_window_end)
end"""


def page_of(body: str, *, follows: bool, inside: str = INSIDE, due: str = "q.due_at", key: str = "q.key") -> str:
    """Return the query for one page of a window. `due` is how due times are compared, `inside` who is in the window."""
    after = f" and ({due}, {key}) > (:oncue_after_due, :oncue_after)" if follows else ""
    return f"select q.* from ({body}\n) q where {inside}{after} order by {due}, {key} limit :oncue_limit"


def without_key_of(body: str, *, inside: str = INSIDE) -> str:
    """Return the query that finds a row of a window whose key is null: no page after the first would show it."""
    return f"select q.key from ({body}\n) q where q.key is null and {inside} limit 1"


def one_of(body: str) -> str:
    """Return the query for the next time: more than one row is a mistake, and is not read to its end."""
    return f"select q.* from ({body}\n) q limit 2"


def read_one(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return the one value of an answer, None where there is none. Raises ResolveError."""
    if len(rows) > 1 or any(len(row) != 1 for row in rows):
        raise ResolveError("it answers more than one value: write `select min(…) from … where … > :after`.")
    return next(iter(rows[0].values())) if rows else None


def read_page(rows: Sequence[Mapping[str, Any]], *, limit: int) -> Page:
    """Return rows as a page, with who is due when. A row whose due_at is no time is rejected; its neighbours stay.

    A key has one place in a page: where it comes again, for another due time, the next page begins.
    """
    dues: dict[Key, datetime] = {}
    taken: list[Mapping[str, Any]] = []
    bad: dict[Key, str] = {}
    is_cut = False
    for place, row in enumerate(rows, 1):
        if "due_at" not in row:
            raise ResolveError(NO_DUE)
        key = query.read_key(row, place)
        due, why = _read_due(row["due_at"])
        if key in dues and dues[key] != due:
            is_cut = True
            break
        dues[key] = due
        taken.append(row)
        if why:
            bad[key] = why
    good = [row for place, row in enumerate(taken, 1) if query.read_key(row, place) not in bad]
    page = query.read_page(good, limit=len(rows) + 1)
    cursor = _cursor_of(taken[-1]) if is_cut or len(rows) >= limit else None
    return Page(page.entities, cursor, (*page.rejected, *bad.items()), _told(page, dues, bad))


def bounds(after: datetime, until: datetime, *, cursor: str | None, limit: int) -> dict[str, Any]:
    """Return the parameters of a page's query, times as they are."""
    bound: dict[str, Any] = {"oncue_window_start": after, "oncue_window_end": until, "oncue_limit": limit}
    if cursor is not None:
        due, key = json.loads(cursor)
        bound |= {"oncue_after_due": read_moment(due), "oncue_after": key}
    return bound


def sqlite_bounds(after: datetime, until: datetime, *, cursor: str | None, limit: int) -> dict[str, Any]:
    """Return the parameters of a page's query for SQLite: times as canonical texts, days and seconds around them."""
    bound: dict[str, Any] = {
        "oncue_window_start": canonical(after),
        "oncue_window_end": canonical(until),
        "oncue_limit": limit,
        "oncue_day_before": f"{after - DAY:%Y-%m-%d}",
        "oncue_day_after": f"{until + 2 * DAY:%Y-%m-%d}",
        "oncue_second_before": math.floor(after.timestamp()) - 1,
        "oncue_second_after": math.ceil(until.timestamp()) + 1,
    }
    if cursor is not None:
        bound["oncue_after_due"], bound["oncue_after"] = json.loads(cursor)
    return bound


def sqlite_due(value: Any) -> str | None:
    """Return a due time as canonical text, whatever its spelling: a function of SQL. Null is in no window."""
    if value is None:
        return None
    try:
        return canonical(read_moment(value))
    except ValueError:
        return BAD


def _cursor_of(row: Mapping[str, Any]) -> str:
    due, why = _read_due(row["due_at"])
    return json.dumps([BAD if why else canonical(due), query.read_key(row, 1)])


def _read_due(value: Any) -> tuple[datetime, str | None]:
    try:
        return read_moment(value), None
    except ValueError as error:
        return NO_TIME, f"its due_at cannot be read: {error}"


def _told(page: Page, dues: Mapping[Key, datetime], bad: Mapping[Key, str]) -> dict[Key, datetime | None]:
    """Return the due time of everybody on a page, by the keys that the page has; None where it is no time."""
    told: dict[Key, datetime | None] = {entity.key: dues[entity.key] for entity in page.entities}
    told |= {key: dues.get(key) for key, _ in page.rejected}
    return told | dict.fromkeys(bad)
