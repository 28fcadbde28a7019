"""Event patterns: does an event fit what a subscription asks for? The semantics of EventBridge's event patterns.

A pattern is a table in the shape of the event. Its leaves are lists of alternatives: plain values, or tests such as
`{ prefix = "a" }`. All keys of a table must fit, one alternative of each list; a list in the event fits if any of its
elements does. Patterns are checked once, when they are read; matching trusts them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Final

from oncue.definition import Subscription
from oncue.model import Event
from oncue.rules.identity import time_text
from oncue.rules.shape import each, near, shown

ATTRIBUTES: Final = ("id", "source", "type", "subject", "time", "data")
ALIASES: Final = {"detail": "data", "detail-type": "type"}
COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
}
TESTS: Final = ("prefix", "suffix", "equals-ignore-case", "anything-but", "numeric", "exists")
TEXT_TESTS: Final = ("prefix", "suffix", "equals-ignore-case")
ABSENT: Final = object()
SCALARS: Final = (str, int, float, type(None))


def fits(subscription: Subscription, event: Event) -> bool:
    """Tell whether an event starts the subscription's task."""
    if subscription.event != event.type:
        return False
    return not subscription.match or matches(subscription.match, attributes(event))


def attributes(event: Event) -> dict[str, Any]:
    """Return what patterns speak of. A subject or data that the event does not have is absent, not null."""
    found = {"id": event.id, "source": event.source, "type": event.type, "time": time_text(event.time)}
    if event.subject is not None:
        found["subject"] = event.subject
    return found if event.data is None else {**found, "data": event.data}


def matches(pattern: Mapping[str, Any], attributes: Mapping[str, Any]) -> bool:
    """Tell whether attributes fit a pattern that `check_pattern` has passed."""
    for name, wanted in pattern.items():
        value = attributes.get(name, ABSENT)
        if isinstance(wanted, Mapping):
            if not _fits_table(wanted, value):
                return False
        elif not any(_fits(one, value) for one in wanted):
            return False
    return True


def check_pattern(pattern: object) -> None:
    """Raise ValueError with a sentence for each part of a pattern that can never be understood."""
    _check_table(pattern, known=ATTRIBUTES)


def _fits_table(pattern: Mapping[str, Any], value: Any) -> bool:
    if isinstance(value, list):
        return any(isinstance(item, Mapping) and matches(pattern, item) for item in value)
    return matches(pattern, value if isinstance(value, Mapping) else {})


def _fits(alternative: Any, value: Any) -> bool:
    if isinstance(alternative, Mapping):
        test, wanted = next(iter(alternative.items()))
        if test == "exists":
            return (value is not ABSENT) is wanted
        return _any(value, lambda item: _passes(test, wanted, item))
    return _any(value, lambda item: _same(alternative, item))


def _any(value: Any, fits_one: Callable[[Any], bool]) -> bool:
    """Tell whether a plain value fits, or any in a list, however deep a sender nests them."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif item is not ABSENT and not isinstance(item, Mapping) and fits_one(item):
            return True
    return False


def _same(wanted: Any, value: Any) -> bool:
    """Tell whether two plain values are one: true is not 1, and 1 is 1.0."""
    return isinstance(wanted, bool) is isinstance(value, bool) and bool(wanted == value)


def _passes(test: str, wanted: Any, value: Any) -> bool:
    match test:
        case "prefix":
            return isinstance(value, str) and value.startswith(wanted)
        case "suffix":
            return isinstance(value, str) and value.endswith(wanted)
        case "equals-ignore-case":
            return isinstance(value, str) and value.casefold() == wanted.casefold()
        case "numeric":
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return False
            return all(COMPARE[sign](value, number) for sign, number in zip(wanted[::2], wanted[1::2], strict=True))
    if isinstance(wanted, Mapping):
        inner, words = next(iter(wanted.items()))
        return not any(_passes(inner, word, value) for word in (words if isinstance(words, list) else [words]))
    return not any(_same(one, value) for one in (wanted if isinstance(wanted, list) else [wanted]))


def _check_table(pattern: object, *, known: Sequence[str] = ()) -> None:
    if not isinstance(pattern, Mapping):
        raise ValueError('this is not a table. Write { data = { status = ["paid"] } }.')

    def check(name: str, wanted: object) -> None:
        if known and name not in known:
            raise ValueError(f"events have no such attribute.{near(ALIASES.get(name, name), known)}")
        _check_wanted(wanted)

    each(pattern.items(), check)


def _check_wanted(wanted: object) -> None:
    if isinstance(wanted, Mapping):
        if len(wanted) == 1 and (test := next(iter(wanted))) in TESTS:
            raise ValueError(f"a test stands in a list. Write [{{ {test} = … }}].")
        _check_table(wanted)
    elif not isinstance(wanted, list):
        raise ValueError(f"{shown(wanted)} stands alone. Write a list of alternatives: [{shown(wanted)}].")
    elif not wanted:
        raise ValueError("the list is empty, and nothing can fit. Write what fits, or leave the key out.")
    else:
        each(enumerate(wanted), lambda _, one: _check_alternative(one))


def _check_alternative(one: object) -> None:
    if isinstance(one, Mapping):
        if len(one) != 1:
            raise ValueError(f"a test has one key, and this has {len(one)}. Known: {', '.join(TESTS)}.")
        test, wanted = next(iter(one.items()))
        if test not in TESTS:
            raise ValueError(f'there is no test "{test}".{near(test, TESTS)}')
        _check_test(test, wanted)
    elif not _is_plain(one):
        raise ValueError(f'{shown(one)} is neither a plain value nor a test such as {{ prefix = "a" }}.')


def _is_plain(value: object) -> bool:
    return isinstance(value, SCALARS) and (not isinstance(value, float) or isfinite(value))


def _check_test(test: str, wanted: Any) -> None:
    if test in TEXT_TESTS and not isinstance(wanted, str):
        raise ValueError(f"{test}: {shown(wanted)} is not text. Write it in quotes.")
    if test == "exists" and not isinstance(wanted, bool):
        raise ValueError(f"exists: {shown(wanted)} is neither true nor false.")
    if test == "numeric":
        _check_numeric(wanted)
    if test == "anything-but":
        _check_anything_but(wanted)


def _check_numeric(wanted: Any) -> None:
    remedy = 'Write for example ["<=", 3] or [">", 0, "<", 10].'
    if not isinstance(wanted, list) or len(wanted) not in (2, 4):
        raise ValueError(f"numeric: {shown(wanted)} is not one or two comparisons. {remedy}")
    for sign, number in zip(wanted[::2], wanted[1::2], strict=True):
        if not isinstance(sign, str) or sign not in COMPARE:
            raise ValueError(f"numeric: {shown(sign)} is not a comparison.{near(sign, COMPARE)}")
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not isfinite(number):
            raise ValueError(f"numeric: {shown(number)} is not a number. {remedy}")


def _check_anything_but(wanted: Any) -> None:
    inner, words = "", wanted
    if isinstance(wanted, Mapping):
        inner, words = next(iter(wanted.items())) if len(wanted) == 1 else ("", None)
        if inner not in TEXT_TESTS:
            raise ValueError(f"anything-but takes one of these tests: {', '.join(TEXT_TESTS)}.")
    if words == []:
        raise ValueError("anything-but takes a list that is not empty.")
    for word in words if isinstance(words, list) else [words]:
        if inner:
            _check_test(inner, word)
        elif not _is_plain(word):
            raise ValueError(f"anything-but: {shown(word)} is not a plain value.")
