"""A team's own query, made safe to run page by page: parameters bound by name, wrapped, and never more than one.

`select * from (…) q where key > :after order by key limit :n` reads a page; `… where key in (…)` asks again.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from oncue.errors import ResolveError
from oncue.model import Entity, Json, Key, Page

LARGEST = 256 * 1024
_TOKEN = re.compile(
    r"""
    (?P<skip>
        '(?:[^']|'')*'                  # text
      | "(?:[^"]|"")*"                  # a quoted name
      | --[^\n]*                        # a comment
      | /\*.*?\*/
      | (?P<tag>\$\w*\$).*?(?P=tag)     # PostgreSQL's dollar quotes
      | ::                              # a cast
    )
  | :(?P<name>[A-Za-z_]\w*)
  | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_SHIFT = re.compile(r"due_date_(plus|minus)_(\d{1,4})d")


@dataclass(frozen=True, slots=True)
class Statement:
    """A query as its database takes it, with the names of its parameters in order."""

    text: str
    names: tuple[str, ...]


def write(sql: str, *, style: Literal["named", "numbered"]) -> Statement:
    """Return a user's query with its `:name` parameters as the driver spells them. Raises ResolveError."""
    names: dict[str, int] = {}
    parts: list[str] = []
    last = 0
    for token in _TOKEN.finditer(sql):
        if token["end"]:
            if sql[token.end() :].strip():
                raise ResolveError("the query holds more than one statement: give one select, without a semicolon.")
            parts.append(sql[last : token.start()])
            last = len(sql)
            break
        if name := token["name"]:
            place = names.setdefault(name, len(names) + 1)
            parts.append(sql[last : token.start()] + (f"${place}" if style == "numbered" else f":{name}"))
            last = token.end()
    parts.append(sql[last:])
    return Statement("".join(parts).strip(), tuple(names))


def page_of(sql: str, *, follows: bool) -> str:
    """Return the query for one page; `follows` when there is a page before it."""
    after = "where key > :oncue_after " if follows else ""
    return f"select * from ({_bare(sql)}\n) q {after}order by key limit :oncue_limit"


def those_of(sql: str, *, count: int) -> str:
    """Return the query that asks for `count` keys again."""
    keys = ", ".join(f":oncue_key_{place}" for place in range(count))
    return f"select * from ({_bare(sql)}\n) q where key in ({keys})"


def bind(statement: Statement, parameters: Mapping[str, Any]) -> list[Any]:
    """Return the values of a statement's parameters, in order. Raises ResolveError: it names one that is not known."""
    return [_value(name, parameters) for name in statement.names]


def read_page(rows: Sequence[Mapping[str, Any]], *, limit: int) -> Page:
    """Return rows as a page. A row that cannot be an entity is rejected, and its neighbours stay."""
    entities: dict[Key, Entity] = {}
    rejected: dict[Key, str] = {}
    for place, row in enumerate(rows, 1):
        key = read_key(row, place)
        if key in entities or key in rejected:
            continue
        data = {name: _plain(value) for name, value in row.items() if name != "key"}
        if (size := len(json.dumps(data, default=str))) > LARGEST:
            rejected[key] = (
                f"its row holds {size:,} bytes; at most {LARGEST:,} go into a message. Select fewer columns."
            )
        else:
            entities[key] = Entity(key, data)
    cursor = json.dumps(read_key(rows[-1], len(rows))) if len(rows) >= limit else None
    return Page(tuple(entities.values()), cursor, tuple(rejected.items()))


def read_key(row: Mapping[str, Any], place: int) -> Key:
    """Return a row's key as text or a whole number. Raises ResolveError."""
    if "key" not in row:
        names = ", ".join(row)
        raise ResolveError(f'the query has no column "key" (it has {names}): write `select id as key, …`.')
    match row["key"]:
        case bool() | None:
            raise ResolveError(
                f"row {place} of the page has the key {row['key']}: give each row a key that is not null."
            )
        case str() | int() as key:
            return key
        case UUID() as key:
            return str(key)
        case Decimal() as key if key == key.to_integral_value():
            return int(key)
        case key:
            raise ResolveError(f"row {place} of the page has a key of type {type(key).__name__}: cast it to text.")


def distinct(keys: Iterable[Key]) -> list[Key]:
    return list(dict.fromkeys(keys))


def _bare(sql: str) -> str:
    return sql.strip().rstrip(";")


def _value(name: str, parameters: Mapping[str, Any]) -> Any:
    if name in parameters:
        return parameters[name]
    if (shift := _SHIFT.fullmatch(name)) and isinstance(due := parameters.get("due_date"), date):
        days = timedelta(days=int(shift[2]))
        return due + days if shift[1] == "plus" else due - days
    known = ", ".join(f":{known}" for known in parameters if not known.startswith("oncue_"))
    raise ResolveError(
        f"the query uses :{name}, which is not known. Known: {known}, :due_date_plus_3d, :due_date_minus_1d."
    )


def _plain(value: Any) -> Any:
    """Return a column's value as JSON can hold it: times in ISO 8601, decimals as text, bytes as base64."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime() | date() | time():
            return value.isoformat()
        case bytes() | memoryview():
            return base64.b64encode(value).decode()
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict():
            return _plain_mapping(value)
        case _:
            return str(value)


def _plain_mapping(mapping: Mapping[Any, Any]) -> Json:
    return {str(name): _plain(value) for name, value in mapping.items()}
