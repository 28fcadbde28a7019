"""Holidays from the library: what comes of it, and what is said where nothing does."""

from __future__ import annotations

import re
from datetime import date

import pytest

from oncue.adapters.calendars import holidays
from oncue.errors import AdapterError, ConfigError


def test_the_holidays_of_a_country_come_with_english_names() -> None:
    found = holidays.read_holidays(range(2026, 2028), country="GR")

    assert found[date(2026, 3, 25)] == "Independence Day"
    assert found[date(2026, 4, 10)] == "Good Friday"
    assert {day.year for day in found} == {2026, 2027}
    assert list(found) == sorted(found)


def test_a_part_of_a_country_has_holidays_of_its_own() -> None:
    everywhere = holidays.read_holidays(range(2026, 2027), country="DE")
    bavaria = holidays.read_holidays(range(2026, 2027), country="DE", subdivision="BY")

    assert set(bavaria) - set(everywhere) == {date(2026, 1, 6), date(2026, 6, 4), date(2026, 11, 1)}


@pytest.mark.parametrize(
    ("exchange", "day", "name"),
    [
        ("XNYS", date(2026, 4, 3), "Good Friday"),
        ("NYSE", date(2026, 11, 26), "Thanksgiving"),
        ("XECB", date(2026, 5, 1), "Labour Day|1 May|Labor Day"),
        ("ECB", date(2026, 12, 26), "."),
    ],
)
def test_the_holidays_of_an_exchange_are_those_on_which_it_is_closed(exchange: str, day: date, name: str) -> None:
    found = holidays.read_holidays(range(2026, 2027), exchange=exchange)

    assert re.search(name, found[day])
    assert date(2026, 2, 3) not in found


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"country": "GX"}, 'no country "GX". Did you mean'),
        ({"country": "DE", "subdivision": "BX"}, 'no subdivision "BX" of country DE. Did you mean'),
        ({"country": "DE", "subdivision": "Bayern"}, 'calls "Bayern" by its code: --subdivision BY.'),
        ({"country": "GR", "subdivision": "A"}, "There are none: leave --subdivision out."),
        ({"exchange": "NYSX"}, 'no exchange "NYSX". Did you mean XNYS or NYSE'),
        ({"exchange": "000000"}, "Known are for example"),
    ],
)
def test_a_place_that_is_not_known_is_told_with_near_words(asked: dict[str, str], says: str) -> None:
    with pytest.raises(AdapterError, match=re.escape(says)):
        holidays.read_holidays(range(2026, 2027), **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("years", "asked", "says"),
    [
        (
            range(1995, 2000),
            {"exchange": "XECB"},
            r"knows no days of exchange XECB in 1995, 1996, 1997 and 1 more year",
        ),
        (range(1898, 1900), {"country": "GR"}, r"knows no days of country GR in 1898, 1899\."),
        (
            range(2034, 2038),
            {"country": "IN"},
            r"country IN in some of 2034 to 2037: .*available only from 2001 to 2035",
        ),
    ],
)
def test_years_without_data_are_refused_by_name(years: range, asked: dict[str, str], says: str) -> None:
    with pytest.raises(AdapterError, match=says):
        holidays.read_holidays(years, **asked)  # type: ignore[arg-type]


def test_without_the_library_the_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oncue.adapters.calendars.holidays.util.find_spec", lambda _name: None)

    with pytest.raises(ConfigError, match=re.escape("pip install 'oncue[calendars]'")):
        holidays.read_holidays(range(2026, 2027), country="GR")
