"""What a user can name is in the docs: commands, routes, metrics, settings, errors, and all of `oncue.__all__`."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import typer.main

import oncue
from oncue import errors
from tests.house import source

CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
ROUTING = {"get", "post", "put", "patch", "delete", "head", "route", "api_route", "add_route", "add_api_route", "Route"}
METRICS = {"Counter", "Gauge", "Histogram", "Summary", "Info", "Enum"}


def test_every_command_is_in_the_docs() -> None:
    assert missing_in_docs(commands()) == []


def test_every_route_is_in_the_docs() -> None:
    assert missing_in_docs(routes()) == []


def test_every_metric_is_in_the_docs() -> None:
    assert missing_in_docs(metrics()) == []


def test_every_setting_is_in_the_docs() -> None:
    assert missing_in_docs(settings()) == []


def test_every_error_is_in_the_docs() -> None:
    assert missing_in_docs(public_classes(errors)) == []


def test_every_public_name_is_in_the_docs() -> None:
    assert missing_in_docs(getattr(oncue, "__all__", ())) == []


def missing_in_docs(names: object) -> list[str]:
    """Return those that no page shows as code, whole: `oncue failures list`, `/v1/tasks/{name}`."""
    pages = [source.ROOT / "README.md", *source.ROOT.glob("docs/**/*.md")]
    code = "\n".join(found for page in pages for found in CODE.findall(page.read_text()))
    return sorted(name for name in set(names) if not re.search(rf"(?<![\w/]){re.escape(name)}(?![\w/])", code))


def commands() -> Iterator[str]:
    """Walk the Typer app of `oncue.cli`, with all its groups."""
    cli = module_of("oncue.cli")
    apps = [each for each in vars(cli).values() if isinstance(each, typer.Typer)]
    assert apps or not hasattr(cli, "main"), "oncue.cli has a main, but its Typer app is not there to be walked"
    waiting = [("oncue", typer.main.get_command(app)) for app in apps[:1]]
    while waiting:
        name, command = waiting.pop()
        groups = getattr(command, "commands", {})
        waiting += [(f"{name} {word}", each) for word, each in groups.items() if not each.hidden]
        if not groups:
            yield name


def routes() -> Iterator[str]:
    """Read the paths that the API and the console route, before an app is made of them."""
    for module in source.modules():
        calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
        prefixes = [word.value for call in calls for word in call.keywords if word.arg == "prefix"]
        prefix = next((str(word.value) for word in prefixes if isinstance(word, ast.Constant)), "")
        for call in calls if module.room in {"api", "console"} else ():
            name = source.dotted(call.func).rpartition(".")[2]
            for path in call.args[:1] if name in ROUTING else ():
                if isinstance(path, ast.Constant) and str(path.value).startswith("/"):
                    yield str(path.value) if name == "Route" else prefix + str(path.value)


def metrics() -> Iterator[str]:
    """Read the names that metrics are made with."""
    for module in source.modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and source.dotted(node.func).rpartition(".")[2] in METRICS:
                yield from (str(name.value) for name in node.args[:1] if isinstance(name, ast.Constant))


def settings() -> Iterator[str]:
    """Read the fields of all dataclasses and pydantic models of `oncue.config`."""
    for kind in vars(module_of("oncue.config")).values():
        if inspect.isclass(kind) and kind.__module__ == "oncue.config" and not kind.__name__.startswith("_"):
            fields = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else ()
            yield from (*fields, *getattr(kind, "model_fields", ()))


def public_classes(module: ModuleType) -> Iterator[str]:
    return (name for name, each in vars(module).items() if inspect.isclass(each) and not name.startswith("_"))


def module_of(name: str) -> ModuleType:
    """Import a module, or return an empty one where it is not written yet."""
    return importlib.import_module(name) if importlib.util.find_spec(name) else ModuleType(name)
