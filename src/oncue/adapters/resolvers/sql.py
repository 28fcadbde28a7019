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
from hashlib import sha256
from typing import Any, Literal
from uuid import UUID

from oncue.errors import ResolveError
from oncue.model import Entity, Json, Key, Page

LARGEST = 256 * 1024
LONGEST_KEY = 1_000
NO_KEY = 'the query has no column "key": write `select id as key, …`.'
Style = Literal["named", "numbered"]
_COMMENT = r"""
    --[^\n]*
  | /\*(?:/\*.*?\*/|.)*?\*/         # PostgreSQL nests them: once is enough
"""
_REST = r"""
      | ::                              # a cast
    )
  | :(?P<name>[A-Za-z_]\w*)
  | (?P<end>;)
  | (?P<place>\$\d+)
"""
_TOKENS: dict[Style, re.Pattern[str]] = {
    "named": re.compile(  # SQLite
        rf"""
        (?P<skip>
            '(?:[^']|'')*'              # text
          | "(?:[^"]|"")*"              # quoted names
          | `(?:[^`]|``)*`
          | \[[^\]]*\]
          | {_COMMENT}
        {_REST}""",
        re.VERBOSE | re.DOTALL,
    ),
    "numbered": re.compile(  # PostgreSQL
        rf"""
        (?P<skip>
            (?<!\w)[eE]'(?:[^'\\]|''|\\.)*' # text with escapes
          | '(?:[^']|'')*'              # text
          | "(?:[^"]|"")*"              # a quoted name
          | (?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag)
          | {_COMMENT}
        {_REST}""",
        re.VERBOSE | re.DOTALL,
    ),
}
_BLANK = re.compile(rf"(?:[\s;]|{_COMMENT})*", re.VERBOSE | re.DOTALL)
_SHIFT = re.compile(r"due_date_(plus|minus)_(\d{1,4})d")


@dataclass(frozen=True, slots=True)
class Statement:
    """A query as its database takes it, with the names of its parameters in order."""

    text: str
    names: tuple[str, ...]


def body_of(sql: str, *, style: Style) -> str:
    """Return a user's query without the semicolon that ends it. Raises ResolveError: it is empty, or more than one."""
    if _BLANK.fullmatch(sql):
        raise ResolveError("the query is empty: write `select id as key, … from …`.")
    for token in _TOKENS[style].finditer(sql):
        if token["place"]:
            raise ResolveError(f"the query uses {token['place']}: parameters are given by name, as :name.")
        if token["end"]:
            if not _BLANK.fullmatch(sql, token.end()):
                raise ResolveError("the query holds more than one statement: give one select, without a semicolon.")
            return sql[: token.start()]
    return sql


def page_of(body: str, *, follows: bool, key: str = "key") -> str:
    """Return the query for one page; `follows` when there is a page before it. `key` is how keys are compared."""
    after = f"where {key} > :oncue_after " if follows else ""
    return f"select * from ({body}\n) q {after}order by {key} limit :oncue_limit"


def those_of(body: str, *, count: int) -> str:
    """Return the query that asks for `count` keys again."""
    keys = ", ".join(f":oncue_key_{place}" for place in range(count))
    return f"select * from ({body}\n) q where key in ({keys})"


def without_key_of(body: str) -> str:
    """Return the query that finds a row whose key is null: no page after the first would show it."""
    return f"select key from ({body}\n) q where key is null limit 1"


def write(sql: str, *, style: Style) -> Statement:
    """Return a query with its `:name` parameters as the driver spells them."""
    names: dict[str, int] = {}
    parts: list[str] = []
    last = 0
    for token in _TOKENS[style].finditer(sql):
        if name := token["name"]:
            place = names.setdefault(name, len(names) + 1)
            parts.append(sql[last : token.start()] + (f"${place}" if style == "numbered" else f":{name}"))
            last = token.end()
    parts.append(sql[last:])
    return Statement("".join(parts).strip(), tuple(names))


def bind(statement: Statement, parameters: Mapping[str, Any]) -> list[Any]:
    """Return the values of a statement's parameters, in order. Raises ResolveError: it names one that is not known."""
    return [_value(name, parameters) for name in statement.names]


def read_page(rows: Sequence[Mapping[str, Any]], *, limit: int) -> Page:
    """Return rows as a page. A row that cannot be an entity is rejected, and its neighbours stay."""
    entities: dict[Key, Entity] = {}
    rejected: dict[Key, str] = {}
    for entity in read_entities(rows):
        if entity.key in entities or entity.key in rejected:
            continue
        if isinstance(entity.key, str) and (kept := _kept(entity.key)) != entity.key:
            rejected[kept] = f"its key has {len(entity.key):,} characters; at most {LONGEST_KEY:,}, and no zero bytes."
        elif (size := len(json.dumps(entity.data, default=str))) > LARGEST:
            rejected[entity.key] = (
                f"its row holds {size:,} bytes; at most {LARGEST:,} go into a message. Select fewer columns."
            )
        else:
            entities[entity.key] = entity
    cursor = json.dumps(read_key(rows[-1], len(rows))) if len(rows) >= limit else None
    return Page(tuple(entities.values()), cursor, tuple(rejected.items()))


def read_entities(rows: Sequence[Mapping[str, Any]]) -> list[Entity]:
    """Return rows as entities, whatever their size. Raises ResolveError: a row has no usable key."""
    return [
        Entity(read_key(row, place), {name: _plain(value) for name, value in row.items() if name != "key"})
        for place, row in enumerate(rows, 1)
    ]


def read_key(row: Mapping[str, Any], place: int) -> Key:
    """Return a row's key as text or a whole number. Raises ResolveError."""
    if "key" not in row:
        raise ResolveError(NO_KEY)
    match row["key"]:
        case bool() | None:
            raise ResolveError(
                f"row {place} of the page has the key {row['key']}: give each row a key that is not null."
            )
        case "":
            raise ResolveError(f"row {place} of the page has an empty key: give each row a key that is not empty.")
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


def _kept(key: str) -> str:
    """Return what a store can hold of a key: two that begin alike stay two."""
    if len(key) > LONGEST_KEY:
        key = f"{key[: LONGEST_KEY - 17]}…{sha256(key.encode('utf-8', 'replace')).hexdigest()[:16]}"
    return key.replace("\0", "\ufffd")


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
