"""What every source of entities keeps. Subclass `SourceConformance` and give it a `rig` fixture."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pytest

from oncue.adapters.base import Source
from oncue.adapters.resolvers.sql import LONGEST_KEY
from oncue.errors import ResolveError
from oncue.model import Key
from oncue.testing.conformance.windows import WindowConformance

PARAMETERS: dict[str, Any] = {
    "due_at": datetime(2026, 3, 28, 7, tzinfo=UTC),
    "previous_due_at": None,
    "due_date": date(2026, 3, 28),
}
TRIALS = "select id as key, email, ends_on from trial where ends_on = :due_date_plus_3d"


@dataclass(frozen=True, slots=True)
class SourceRig:
    """A source under test, and a way to run statements on the data that it reads, as the team that owns it would."""

    source: Source
    run: Callable[[str], Awaitable[None]]


class SourceConformance(WindowConformance):
    """Every test here holds for every source."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    async def trials(self, rig: SourceRig) -> SourceRig:
        await rig.run("create table trial (id integer primary key, email text, ends_on date)")
        values = ", ".join(f"({number}, 'a{number}@example.org', '2026-03-31')" for number in range(1, 8))
        await rig.run(f"insert into trial values {values}, (8, 'late@example.org', '2026-04-01')")
        return rig

    async def test_pages_follow_each_other_in_the_order_of_keys_until_the_last(self, trials: SourceRig) -> None:
        first = await trials.source.page(TRIALS, PARAMETERS, cursor=None, limit=4)
        second = await trials.source.page(TRIALS, PARAMETERS, cursor=first.cursor, limit=4)

        assert [entity.key for entity in first.entities] == [1, 2, 3, 4]
        assert [entity.key for entity in second.entities] == [5, 6, 7]
        assert second.cursor is None

    async def test_data_is_what_the_query_yields_beside_the_key(self, trials: SourceRig) -> None:
        page = await trials.source.page(TRIALS, PARAMETERS, cursor=None, limit=1)

        assert page.entities[0].data == {"email": "a1@example.org", "ends_on": "2026-03-31"}

    async def test_a_row_that_goes_between_two_pages_is_not_in_the_second(self, trials: SourceRig) -> None:
        first = await trials.source.page(TRIALS, PARAMETERS, cursor=None, limit=4)
        await trials.run("delete from trial where id in (2, 6)")
        second = await trials.source.page(TRIALS, PARAMETERS, cursor=first.cursor, limit=4)

        assert [entity.key for entity in second.entities] == [5, 7]

    async def test_asking_again_finds_those_only_who_still_qualify(self, trials: SourceRig) -> None:
        await trials.run("update trial set ends_on = '2027-01-01' where id = 3")

        entities = await trials.source.ask(TRIALS, PARAMETERS, keys=[2, 3, 8, 99])

        assert [entity.key for entity in entities] == [2]

    async def test_a_key_that_comes_as_text_finds_a_whole_number(self, trials: SourceRig) -> None:
        entities = await trials.source.ask(TRIALS, PARAMETERS, keys=["5"])

        assert [entity.key for entity in entities] == [5]

    async def test_text_keys_are_paged_and_asked_for(self, rig: SourceRig) -> None:
        await rig.run("create table member (name text primary key)")
        await rig.run("insert into member values ('ann'), ('bob'), ('o''hara; drop table member --')")
        query = "select name as key from member"

        first = await rig.source.page(query, PARAMETERS, cursor=None, limit=2)
        second = await rig.source.page(query, PARAMETERS, cursor=first.cursor, limit=2)
        asked = await rig.source.ask(query, PARAMETERS, keys=[second.entities[0].key])

        assert [entity.key for entity in second.entities] == ["o'hara; drop table member --"]
        assert asked == list(second.entities)

    async def test_colons_in_texts_comments_and_casts_are_no_parameters(self, rig: SourceRig) -> None:
        query = """select 1 as key, ':nobody' as text, cast('12:30' as text) as "at :noon" -- :nothing; here
            /* :nor_here */;"""

        page = await rig.source.page(query, PARAMETERS, cursor=None, limit=2)

        assert page.entities[0].data == {"text": ":nobody", "at :noon": "12:30"}

    async def test_an_unknown_parameter_is_named_with_those_that_are_known(self, rig: SourceRig) -> None:
        with pytest.raises(ResolveError, match=r":tomorrow.*Known: :due_at.*:due_date_plus_3d"):
            await rig.source.page("select 1 as key where :tomorrow = 1", PARAMETERS, cursor=None, limit=1)

    async def test_a_query_without_a_key_column_says_what_to_write(self, rig: SourceRig) -> None:
        with pytest.raises(ResolveError, match="select id as key"):
            await rig.source.page("select 1 as id", PARAMETERS, cursor=None, limit=1)

    async def test_a_key_that_is_null_is_refused(self, rig: SourceRig) -> None:
        with pytest.raises(ResolveError, match="not null"):
            await rig.source.page("select cast(null as integer) as key", PARAMETERS, cursor=None, limit=1)

    async def test_a_key_that_is_null_is_refused_wherever_it_would_stand(self, trials: SourceRig) -> None:
        query = "select case when id > 6 then null else id end as key from trial"

        with pytest.raises(ResolveError, match="not null"):
            await trials.source.page(query, PARAMETERS, cursor=None, limit=3)

    async def test_a_key_that_cannot_be_stored_is_rejected_and_its_neighbours_stay(self, rig: SourceRig) -> None:
        await rig.run("create table member (name text)")
        await rig.run(f"insert into member values ('ann'), ('b{'o' * 5_000}a'), ('b{'o' * 5_000}b'), ('zoe')")

        page = await rig.source.page("select name as key from member", PARAMETERS, cursor=None, limit=10)

        assert [entity.key for entity in page.entities] == ["ann", "zoe"]
        assert [len(str(key)) for key, _ in page.rejected] == [LONGEST_KEY] * 2

    async def test_an_empty_query_is_refused(self, rig: SourceRig) -> None:
        with pytest.raises(ResolveError, match="empty"):
            await rig.source.page(" ; -- nothing", PARAMETERS, cursor=None, limit=1)

    async def test_a_semicolon_and_a_comment_may_end_a_query(self, rig: SourceRig) -> None:
        page = await rig.source.page("select 1 as key; -- that is all; :really", PARAMETERS, cursor=None, limit=2)

        assert [entity.key for entity in page.entities] == [1]

    async def test_a_key_that_no_row_can_have_finds_nobody(self, trials: SourceRig) -> None:
        keys: list[Key] = ["nobody", "4_2", " 5", 10**30, "1" * 40]

        assert await trials.source.ask(TRIALS, PARAMETERS, keys=keys) == []

    async def test_a_row_that_has_grown_too_large_still_qualifies(self, trials: SourceRig) -> None:
        await trials.run(f"update trial set email = '{'x' * 300_000}' where id = 3")

        assert [entity.key for entity in await trials.source.ask(TRIALS, PARAMETERS, keys=[3])] == [3]

    async def test_an_events_text_is_compared_as_the_column_wants_it(self, trials: SourceRig) -> None:
        query = "select id as key from trial where ends_on = :event_day and id <= :event_most"
        parameters = {**PARAMETERS, "event_day": "2026-03-31", "event_most": 2}

        page = await trials.source.page(query, parameters, cursor=None, limit=10)

        assert [entity.key for entity in page.entities] == [1, 2]

    @pytest.mark.parametrize(("column", "value"), [("id", 10**30), ("email", "lone \ud800 surrogate")])
    async def test_a_value_that_cannot_be_bound_is_named_and_not_shown(
        self, trials: SourceRig, column: str, value: object
    ) -> None:
        query = f"select id as key from trial where {column} = :event_word"

        with pytest.raises(ResolveError, match=":event_word") as raised:
            await trials.source.page(query, {**PARAMETERS, "event_word": value}, cursor=None, limit=10)

        assert str(value) not in str(raised.value)

    async def test_two_statements_are_refused(self, rig: SourceRig) -> None:
        with pytest.raises(ResolveError, match="more than one statement"):
            await rig.source.page("select 1 as key; select 2 as key", PARAMETERS, cursor=None, limit=1)

    async def test_a_query_cannot_write(self, trials: SourceRig) -> None:
        with pytest.raises(ResolveError):
            await trials.source.page("delete from trial returning id as key", PARAMETERS, cursor=None, limit=1)

        assert len((await trials.source.page(TRIALS, PARAMETERS, cursor=None, limit=10)).entities) == 7

    async def test_a_query_that_fails_names_its_source_and_carries_the_words(self, rig: SourceRig) -> None:
        with pytest.raises(ResolveError, match=r'source "app".*nowhere'):
            await rig.source.page("select id as key from nowhere", PARAMETERS, cursor=None, limit=1)

    async def test_a_row_that_is_too_large_is_rejected_and_its_neighbours_stay(self, rig: SourceRig) -> None:
        await rig.run("create table note (id integer primary key, text text)")
        await rig.run(f"insert into note values (1, 'short'), (2, '{'x' * 300_000}'), (3, 'short too')")

        page = await rig.source.page("select id as key, text from note", PARAMETERS, cursor=None, limit=10)

        assert [entity.key for entity in page.entities] == [1, 3]
        assert [key for key, _ in page.rejected] == [2]

    async def test_a_key_that_comes_twice_is_one_entity(self, rig: SourceRig) -> None:
        query = "select 1 as key, 'a' as text union all select 1, 'b'"

        page = await rig.source.page(query, PARAMETERS, cursor=None, limit=10)

        assert len(page.entities) == 1
