"""Names say what a thing is or does."""

from __future__ import annotations

import re
from pathlib import PurePath

from tests.house import source

EMPTY_VERB = re.compile(r"_*(get|do|handle|process)_[a-z]")  # do_GET is the standard library's
EMPTY_NOUN = re.compile(r"(^|_)(util|utils|utility|common|helper|helpers|manager|managers)(_|$)")


def test_no_function_begins_with_an_empty_verb() -> None:
    names = [f"{module.place} {each.name}" for module in source.modules() for each in module.functions()]

    assert [name for name in names if EMPTY_VERB.match(name.split()[1])] == []


def test_no_module_is_named_for_nothing_in_it() -> None:
    words = {part for module in source.modules() for part in PurePath(module.place).with_suffix("").parts}

    assert [word for word in words if EMPTY_NOUN.search(word)] == []


def test_a_base_holds_a_protocol() -> None:
    bases = [module for module in source.modules() if PurePath(module.place).name == "base.py"]

    assert [module.place for module in bases if "(Protocol" not in module.text] == []
