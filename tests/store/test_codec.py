"""What goes into a column comes out as it was."""

from __future__ import annotations

import pytest

from oncue.definition import (
    BrokerTarget,
    Definition,
    EventResolver,
    HttpTarget,
    NoResolver,
    Resolver,
    SqlResolver,
    Target,
)
from oncue.store import codec


@pytest.mark.parametrize("resolve", [SqlResolver("select 1 as key", "app"), EventResolver(), NoResolver()])
@pytest.mark.parametrize("target", [HttpTarget("http://127.0.0.1/"), BrokerTarget("main", "celery")])
def test_a_definition_comes_back_as_it_was_written(resolve: Resolver, target: Target) -> None:
    definition = Definition("greet", target, resolve=resolve, schedule={"cron": "0 9 * * *"})

    assert codec.read_definition(codec.write_definition(definition)) == definition
