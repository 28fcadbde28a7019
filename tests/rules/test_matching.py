"""Event patterns: what fits, what does not, and what is refused when it is read."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncue.definition import Subscription
from oncue.model import Event
from oncue.rules.matching import check_pattern, fits, matches
from oncue.rules.shape import Wrong

DATA: dict[str, Any] = {
    "status": "paid",
    "days": 3,
    "price": 9.5,
    "flag": True,
    "one": 1,
    "note": None,
    "tags": ["red", "blue"],
    "none": [],
    "user": {"country": "GR", "roles": ["admin", "owner"]},
    "items": [{"sku": "a", "count": 1}, {"sku": "b", "count": 9}],
}

FITS: list[dict[str, Any]] = [
    {},
    {"status": ["paid"]},
    {"status": ["open", "paid"]},
    {"days": [3]},
    {"days": [3.0]},
    {"flag": [True]},
    {"one": [1]},
    {"note": [None]},
    {"status": [{"prefix": "pa"}]},
    {"status": [{"suffix": "id"}]},
    {"status": [{"equals-ignore-case": "PAID"}]},
    {"status": [{"anything-but": "open"}]},
    {"status": [{"anything-but": ["open", "void"]}]},
    {"status": [{"anything-but": {"prefix": "op"}}]},
    {"status": [{"anything-but": {"suffix": ["x", "y"]}}]},
    {"days": [{"anything-but": 4}]},
    {"flag": [{"anything-but": 1}]},
    {"note": [{"anything-but": "x"}]},
    {"days": [{"numeric": ["<=", 3]}]},
    {"days": [{"numeric": [">", 0, "<", 10]}]},
    {"price": [{"numeric": ["=", 9.5]}]},
    {"status": [{"exists": True}]},
    {"note": [{"exists": True}]},
    {"none": [{"exists": True}]},
    {"missing": [{"exists": False}]},
    {"missing": [{"exists": False}, "x"]},
    {"missing": {"deep": [{"exists": False}]}},
    {"status": {"deep": [{"exists": False}]}},
    {"tags": ["blue"]},
    {"tags": [{"prefix": "re"}]},
    {"tags": [{"anything-but": "red"}]},
    {"user": {"country": ["GR"], "roles": ["owner"]}},
    {"items": {"sku": ["b"], "count": [{"numeric": [">", 5]}]}},
    {"status": ["paid"], "days": [3]},
]

DOES_NOT_FIT: list[dict[str, Any]] = [
    {"status": ["open"]},
    {"status": ["PAID"]},
    {"status": ["pai"]},
    {"days": ["3"]},
    {"flag": [1]},
    {"one": [True]},
    {"missing": [None]},
    {"note": [False]},
    {"status": [{"prefix": "aid"}]},
    {"days": [{"prefix": "3"}]},
    {"status": [{"suffix": "pa"}]},
    {"days": [{"equals-ignore-case": "3"}]},
    {"status": [{"anything-but": ["open", "paid"]}]},
    {"status": [{"anything-but": {"prefix": ["x", "pa"]}}]},
    {"missing": [{"anything-but": "x"}]},
    {"user": [{"anything-but": "x"}]},
    {"days": [{"numeric": ["<", 3]}]},
    {"days": [{"numeric": [">", 0, "<", 3]}]},
    {"flag": [{"numeric": ["=", 1]}]},
    {"status": [{"numeric": ["=", 1]}]},
    {"missing": [{"numeric": ["=", 1]}]},
    {"status": [{"exists": False}]},
    {"missing": [{"exists": True}]},
    {"none": ["x"]},
    {"none": [{"anything-but": "x"}]},
    {"tags": ["green"]},
    {"user": ["GR"]},
    {"user": {"country": ["DE"]}},
    {"status": {"deep": ["x"]}},
    {"items": {"sku": ["a"], "count": [9]}},
    {"status": ["paid"], "days": [4]},
]

REFUSED: list[tuple[Any, tuple[str | int, ...], str]] = [
    (5, (), 'this is not a table. Write { data = { status = ["paid"] } }.'),
    ({"detail": {}}, ("detail",), 'events have no such attribute. Did you mean "data"? Known: id, source,'),
    ({"typ": ["a"]}, ("typ",), 'events have no such attribute. Did you mean "type"?'),
    ({"data": {"a": "x"}}, ("data", "a"), '"x" stands alone. Write a list of alternatives: ["x"].'),
    ({"data": {"a": []}}, ("data", "a"), "the list is empty, and nothing can fit."),
    ({"data": {"a": {"prefix": "x"}}}, ("data", "a"), "a test stands in a list. Write [{ prefix = … }]."),
    ({"data": {"a": [{"prefx": "x"}]}}, ("data", "a", 0), 'there is no test "prefx". Did you mean "prefix"?'),
    ({"data": {"a": ["ok", {}]}}, ("data", "a", 1), "a test has one key, and this has 0."),
    ({"data": {"a": [{"prefix": "x", "suffix": "y"}]}}, ("data", "a", 0), "a test has one key, and this has 2."),
    ({"data": {"a": [["x"]]}}, ("data", "a", 0), '["x"] is neither a plain value nor a test'),
    ({"data": {"a": [{"prefix": 1}]}}, ("data", "a", 0), "prefix: 1 is not text. Write it in quotes."),
    ({"data": {"a": [{"exists": "yes"}]}}, ("data", "a", 0), 'exists: "yes" is neither true nor false.'),
    ({"data": {"a": [{"numeric": 3}]}}, ("data", "a", 0), "numeric: 3 is not one or two comparisons."),
    ({"data": {"a": [{"numeric": ["<"]}]}}, ("data", "a", 0), 'numeric: ["<"] is not one or two comparisons.'),
    ({"data": {"a": [{"numeric": ["=<", 3]}]}}, ("data", "a", 0), 'numeric: "=<" is not a comparison.'),
    ({"data": {"a": [{"numeric": [["<"], 3]}]}}, ("data", "a", 0), 'numeric: ["<"] is not a comparison.'),
    ({"data": {"a": [{"numeric": ["<", True]}]}}, ("data", "a", 0), "numeric: true is not a number."),
    ({"data": {"a": [{"numeric": ["<", float("inf")]}]}}, ("data", "a", 0), "numeric: Infinity is not a number."),
    ({"data": {"a": [float("nan")]}}, ("data", "a", 0), "NaN is neither a plain value nor a test"),
    ({"data": {"a": [{"anything-but": {"numeric": []}}]}}, ("data", "a", 0), "anything-but takes one of these tests:"),
    ({"data": {"a": [{"anything-but": {"prefix": []}}]}}, ("data", "a", 0), "anything-but takes a list that is not"),
    ({"data": {"a": [{"anything-but": []}]}}, ("data", "a", 0), "anything-but takes a list that is not empty."),
    ({"data": {"a": [{"anything-but": [[1]]}]}}, ("data", "a", 0), "anything-but: [1] is not a plain value."),
]


@pytest.mark.parametrize("pattern", FITS, ids=str)
def test_a_pattern_fits(pattern: dict[str, Any]) -> None:
    check_pattern({"data": pattern})

    assert matches({"data": pattern}, {"data": DATA})


@pytest.mark.parametrize("pattern", DOES_NOT_FIT, ids=str)
def test_a_pattern_does_not_fit(pattern: dict[str, Any]) -> None:
    check_pattern({"data": pattern})

    assert not matches({"data": pattern}, {"data": DATA})


@pytest.mark.parametrize(("pattern", "place", "sentence"), REFUSED, ids=str)
def test_a_wrong_pattern_is_refused_at_its_place(pattern: Any, place: tuple[str | int, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"\.$") as caught:
        check_pattern(pattern)

    error = caught.value
    assert (error.mistakes[0].place if isinstance(error, Wrong) else ()) == place
    assert str(error).startswith(sentence)


def test_all_mistakes_of_a_pattern_are_told() -> None:
    with pytest.raises(Wrong) as caught:
        check_pattern({"typ": ["a"], "data": {"a": [], "b": [{"prefix": 1}, {"sufix": "x"}]}})

    assert [one.place for one in caught.value.mistakes] == [
        ("typ",),
        ("data", "a"),
        ("data", "b", 0),
        ("data", "b", 1),
    ]


EVENT = Event(
    id="1", source="/shop", type="order.paid", time=datetime(2026, 1, 1, tzinfo=UTC), subject="o-1", data={"total": 5}
)


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        (Subscription("order.paid"), True),
        (Subscription("order.paid", {"subject": [{"prefix": "o-"}], "source": ["/shop"], "id": ["1"]}), True),
        (Subscription("order.paid", {"time": [{"prefix": "2026-01-01T"}], "type": ["order.paid"]}), True),
        (Subscription("order.paid", {"data": {"total": [{"numeric": [">", 4]}]}}), True),
        (Subscription("order.paid", {"data": {"total": [{"numeric": [">", 5]}]}}), False),
        (Subscription("order.shipped"), False),
        (Subscription("order"), False),
    ],
)
def test_a_subscription_takes_the_events_it_asks_for(subscription: Subscription, expected: bool) -> None:
    assert fits(subscription, EVENT) is expected


def test_a_subject_and_data_that_an_event_lacks_are_absent() -> None:
    bare = Event(id="1", source="/shop", type="order.paid", time=datetime(2026, 1, 1, tzinfo=UTC))

    assert fits(Subscription("order.paid", {"subject": [{"exists": False}], "data": [{"exists": False}]}), bare)


def test_lists_nested_however_deep_are_walked() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]

    assert matches({"a": ["x"]}, {"a": deep})
    assert not matches({"a": ["y"]}, {"a": deep})


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))


@given(SCALARS, JSON)
def test_a_value_fits_itself_and_nothing_fits_both_a_value_and_anything_but_it(wanted: Any, value: Any) -> None:
    assert matches({"a": [wanted]}, {"a": wanted})
    assert not matches({"a": [{"anything-but": wanted}]}, {"a": wanted})
    if not isinstance(value, (list, dict)):
        same = matches({"a": [wanted]}, {"a": value})
        assert matches({"a": [{"anything-but": wanted}]}, {"a": value}) is not same


@given(JSON)
def test_a_thing_exists_or_does_not(value: Any) -> None:
    assert matches({"a": [{"exists": True}]}, {"a": value})
    assert not matches({"a": [{"exists": False}]}, {"a": value})


@given(st.dictionaries(st.sampled_from(["id", "data", "type"]), JSON))
def test_any_pattern_that_is_passed_matches_without_an_error(pattern: Any) -> None:
    with suppress(ValueError):
        check_pattern(pattern)
        matches(pattern, {"id": "1", "data": DATA, "type": "x"})
