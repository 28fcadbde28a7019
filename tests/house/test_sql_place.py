"""SQL on Oncue's tables stands in `store/` and nowhere else."""

from __future__ import annotations

import re

from tests.house import source

TABLE = re.compile(r"^\s*create table (?:if not exists )?(\w+)", re.MULTILINE | re.IGNORECASE)
STATEMENT = re.compile(r"\s*(select|insert|update|delete|with|create|alter|drop|truncate)\s", re.IGNORECASE)


def test_no_other_room_speaks_of_our_tables_in_sql() -> None:
    outside = [found for module in source.modules() if module.room != "store" for found in sql_on_our_tables(module)]

    assert outside == []


def test_a_statement_on_a_table_of_ours_is_known_as_one() -> None:
    assert sql_on_our_tables(source.read("engine/clock.py", "ask('select id from runs where state = 1')"))
    assert sql_on_our_tables(source.read("engine/clock.py", "ask(f'update tasks set x = {x}')"))
    assert not sql_on_our_tables(source.read("cli/show.py", "'select a task from the list of tasks'"))
    assert not sql_on_our_tables(source.read("cli/demo.py", "ask('select id as key from trial')"))


def our_tables() -> set[str]:
    files = source.PRODUCT.glob("store/migrations/*.sql")
    return {name for file in files for name in TABLE.findall(file.read_text())}


def sql_on_our_tables(module: source.Module) -> list[str]:
    names = "|".join(sorted(our_tables()) or ["$nothing"])
    use = re.compile(rf"\b(from|join|into|update|table|on)\s+({names})\b", re.IGNORECASE)
    return [
        f"{module.place}:{line}: {text}"
        for line, text in module.strings()
        if STATEMENT.match(text) and use.search(text)
    ]
