"""What every source keeps of windows and next times, for followed schedules: a part of `SourceConformance`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from oncue.errors import ResolveError
from oncue.model import Page

if TYPE_CHECKING:
    from oncue.testing.conformance.sources import SourceRig

NOON: Final = datetime(2026, 3, 28, 12, tzinfo=UTC)
DUE: Final = "select id as key, starts_at as due_at, email from visit"
NEXT: Final = "select min(starts_at) from visit where starts_at > :after"
SECOND: Final = timedelta(seconds=1)
TICK: Final = timedelta(microseconds=1)


async def window(rig: SourceRig, start: float, end: float, *, sql: str = DUE, **changes: Any) -> Page:
    """Return a page of those who are due within so many seconds of noon."""
    given: dict[str, Any] = {"cursor": None, "limit": 100} | changes
    bound = {"due_at": NOON + end * SECOND, "previous_due_at": NOON + start * SECOND}
    return await rig.source.window(sql, bound, after=NOON + start * SECOND, until=NOON + end * SECOND, **given)


class WindowConformance:
    """Windows and next times."""

    @pytest.fixture
    async def visits(self, rig: SourceRig) -> SourceRig:
        await rig.run("create table visit (id integer primary key, starts_at timestamp, email text)")
        rows = ", ".join(
            f"({number}, '2026-03-28 12:00:{number // 2:02}', 'a{number}@example.org')" for number in range(2, 12)
        )
        await rig.run(f"insert into visit values {rows}, (90, null, 'never@example.org')")
        return rig

    async def test_a_window_is_open_at_its_start_and_closed_at_its_end(self, visits: SourceRig) -> None:
        page = await window(visits, 1, 3)

        assert [entity.key for entity in page.entities] == [4, 5, 6, 7]
        assert page.cursor is None

    async def test_who_is_due_when_is_told_with_the_page(self, visits: SourceRig) -> None:
        page = await window(visits, 0, 1)

        assert page.dues == {2: NOON + SECOND, 3: NOON + SECOND}
        assert page.entities[0].data["email"] == "a2@example.org"
        assert "12:00:01" in page.entities[0].data["due_at"]

    @pytest.mark.parametrize("limit", [1, 2, 3, 4, 99])
    async def test_pages_follow_each_other_by_due_time_and_key_until_the_last(
        self, visits: SourceRig, limit: int
    ) -> None:
        await visits.run("update visit set starts_at = '2026-03-28 12:00:01' where id = 11")
        keys, cursor = [], None
        while True:
            page = await window(visits, 0, 9, cursor=cursor, limit=limit)
            keys += [entity.key for entity in page.entities]
            cursor = page.cursor
            if cursor is None:
                break

        assert keys == [2, 3, 11, 4, 5, 6, 7, 8, 9, 10]

    async def test_microseconds_count(self, visits: SourceRig) -> None:
        await visits.run("update visit set starts_at = '2026-03-28 12:00:01.000001' where id = 2")
        until = NOON + SECOND
        given: dict[str, Any] = {"cursor": None, "limit": 9}

        whole = await visits.source.window(DUE, {}, after=NOON, until=until, **given)
        rest = await visits.source.window(DUE, {}, after=until, until=until + TICK, **given)

        assert [entity.key for entity in whole.entities] == [3]
        assert [entity.key for entity in rest.entities] == [2]

    async def test_a_row_without_a_due_time_is_in_no_window(self, visits: SourceRig) -> None:
        page = await visits.source.window(
            DUE, {}, after=NOON - timedelta(days=9999), until=NOON + timedelta(days=9999), cursor=None, limit=99
        )

        assert 90 not in [entity.key for entity in page.entities]
        assert len(page.entities) == 10

    async def test_a_key_that_is_due_twice_is_on_two_pages(self, visits: SourceRig) -> None:
        query = "select 'same' as key, starts_at as due_at from visit"
        found, cursor = [], None
        while True:
            page = await window(visits, 0, 3, sql=query, cursor=cursor)
            assert len(page.entities) == 1
            found += list(page.dues.values())
            cursor = page.cursor
            if cursor is None:
                break

        assert found == [NOON + SECOND, NOON + 2 * SECOND, NOON + 3 * SECOND]

    async def test_text_keys_are_paged_too(self, visits: SourceRig) -> None:
        query = "select email as key, starts_at as due_at from visit"

        first = await window(visits, 0, 9, sql=query, limit=2)
        second = await window(visits, 0, 9, sql=query, limit=2, cursor=first.cursor)

        keys = [entity.key for entity in (*first.entities, *second.entities)]
        assert keys == [f"a{number}@example.org" for number in range(2, 6)]

    async def test_the_ends_of_the_window_may_be_used_in_the_query(self, visits: SourceRig) -> None:
        query = f"{DUE} where starts_at > :previous_due_at and starts_at <= :due_at and id <> 4"

        page = await window(visits, 1, 3, sql=query)

        assert [entity.key for entity in page.entities] == [5, 6, 7]

    async def test_a_query_without_due_at_says_what_to_write(self, visits: SourceRig) -> None:
        with pytest.raises(ResolveError, match=r'no column "due_at": write `select id as key, starts_at as due_at'):
            await window(visits, 0, 9, sql="select id as key from visit")

    async def test_a_key_that_is_null_is_refused_in_a_window_wherever_it_would_stand(self, visits: SourceRig) -> None:
        query = "select case when id > 8 then null else id end as key, starts_at as due_at from visit"

        with pytest.raises(ResolveError, match="not null"):
            await window(visits, 0, 9, sql=query, limit=3)

    async def test_a_row_of_a_window_that_is_too_large_is_rejected_with_its_due_time(self, visits: SourceRig) -> None:
        await visits.run(f"update visit set email = '{'x' * 300_000}' where id = 3")

        page = await window(visits, 0, 1)

        assert [entity.key for entity in page.entities] == [2]
        assert [key for key, _ in page.rejected] == [3]
        assert page.dues == {2: NOON + SECOND, 3: NOON + SECOND}

    async def test_next_is_the_first_time_after(self, visits: SourceRig) -> None:
        assert await visits.source.first(NEXT, after=NOON) == NOON + SECOND
        assert await visits.source.first(NEXT, after=NOON + SECOND) == NOON + 2 * SECOND
        assert await visits.source.first(NEXT, after=NOON + SECOND - TICK) == NOON + SECOND
        assert await visits.source.first(NEXT, after=NOON + 5 * SECOND) is None

    async def test_next_sees_fractions_of_a_second(self, visits: SourceRig) -> None:
        await visits.run("update visit set starts_at = '2026-03-28 12:00:01.250000' where id = 2")
        await visits.run("update visit set starts_at = '2026-03-28 12:00:01.750000' where id = 3")
        quarter = NOON + timedelta(seconds=1.25)

        assert await visits.source.first(NEXT, after=NOON) == quarter
        assert await visits.source.first(NEXT, after=quarter) == NOON + timedelta(seconds=1.75)

    async def test_next_may_answer_no_row_at_all(self, visits: SourceRig) -> None:
        query = "select starts_at from visit where starts_at > :after order by starts_at limit 1"

        assert await visits.source.first(query, after=NOON) == NOON + SECOND
        assert await visits.source.first(query, after=NOON + timedelta(days=1)) is None

    @pytest.mark.parametrize(
        ("sql", "words"),
        [
            ("select starts_at from visit where starts_at is not null", "more than one value"),
            ("select min(starts_at), max(starts_at) from visit", "more than one value"),
            ("select min(email) from visit", "it is no time, but text"),
            ("select min(starts_at) from nowhere", "nowhere"),
            (
                "select min(starts_at) from visit where starts_at > :due_at",
                ":due_at, which is not known. Known: :after",
            ),
            ("", "empty"),
            ("select 1; select 2", "more than one statement"),
        ],
    )
    async def test_a_next_that_cannot_be_answered_says_why(self, visits: SourceRig, sql: str, words: str) -> None:
        with pytest.raises(ResolveError, match=words):
            await visits.source.first(sql, after=NOON)
