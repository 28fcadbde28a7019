"""Holidays of countries and of exchanges, read once from the library `holidays` when somebody imports them."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable
from datetime import date
from importlib import metadata, util
from types import ModuleType
from typing import Any

from oncue.errors import AdapterError, ConfigError

ENGLISH = "en_US"


def read_holidays(
    years: range, *, country: str | None = None, exchange: str | None = None, subdivision: str | None = None
) -> dict[date, str]:
    """Return the holidays of a country (or a part of it), or of an exchange, with their names.

    Raises ConfigError: the library is not installed. Raises AdapterError: it does not know the place, or these years.
    """
    library = _load()
    place = _find(library, country, exchange, subdivision)
    told = f"{'exchange' if exchange else 'country'} {exchange or country}"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = {year: _of_year(place, year, subdivision) for year in years}
    empty = [year for year, days in found.items() if not days]
    if empty or said:
        known = "; ".join(dict.fromkeys(str(one.message).rstrip(".") for one in said))
        why = f": {known}" if known else ""
        which = _listed(empty) if empty else f"some of {years[0]} to {years[-1]}"
        raise AdapterError(
            f"the library `holidays` knows no days of {told} in {which}{why}. Choose other years by --from and --to."
        )
    return {day: name for days in found.values() for day, name in sorted(days.items())}


def version() -> str:
    """Return which version of the library is installed."""
    _load()
    return metadata.version("holidays")


def _load() -> ModuleType:
    if util.find_spec("holidays") is None:
        raise ConfigError(
            "importing the holidays of a country or an exchange needs the library `holidays`: "
            "pip install 'oncue[calendars]'. Or import a file: --file holidays.ics."
        )
    import holidays

    return holidays


def _find(library: Any, country: str | None, exchange: str | None, subdivision: str | None) -> type[Any]:
    """Return the library's class for a place. Raises AdapterError with near words."""
    if exchange is not None:
        _check("exchange", exchange, library.list_supported_financial())
        return type(library.financial_holidays(exchange))
    assert country is not None
    _check("country", country, library.list_supported_countries())
    place = type(library.country_holidays(country))
    if subdivision is not None:
        if code := place.subdivisions_aliases.get(subdivision):
            raise AdapterError(f'the library `holidays` calls "{subdivision}" by its code: --subdivision {code}.')
        _check("subdivision", subdivision, place.subdivisions, within=f" of country {country}")
    return place


def _check(kind: str, word: str, known: Iterable[str], *, within: str = "") -> None:
    words = sorted(known)
    if word in words:
        return
    near = difflib.get_close_matches(word, words, n=3, cutoff=0.3)
    if not words:
        hint = "There are none: leave --subdivision out."
    elif near:
        hint = f"Did you mean {' or '.join(near)}?"
    else:
        hint = f"Known are for example {', '.join(words[:10])}."
    raise AdapterError(f'the library `holidays` has no {kind} "{word}"{within}. {hint}')


def _of_year(place: type[Any], year: int, subdivision: str | None) -> dict[date, str]:
    language = ENGLISH if ENGLISH in place.supported_languages else None
    days = place(years=year, expand=False, subdiv=subdivision, language=language)
    return {day: str(name) for day, name in days.items() if day.year == year}


def _listed(years: list[int]) -> str:
    shown = ", ".join(map(str, years[:3]))
    return shown if len(years) <= 3 else f"{shown} and {len(years) - 3} more years"
