"""The product's source as the house tests read it: files, trees and the strings in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "src" / "oncue"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of the product, with its place in it: `engine/loop.py`."""

    place: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The folder or file right below `oncue`, without an ending."""
        return self.place.partition("/")[0].removesuffix(".py")

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def imports(self) -> Iterator[str]:
        """All that is imported, as dotted names: `from oncue import wall` gives `oncue.wall`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    def strings(self) -> Iterator[tuple[int, str]]:
        """All strings but docstrings, with their lines; of an f-string the parts that stand in the source."""
        docstrings = {id(node.value) for node in ast.walk(self.tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.JoinedStr):
                yield node.lineno, "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield node.lineno, node.value


@cache
def modules() -> list[Module]:
    """Return all files of the product."""
    paths = sorted(PRODUCT.rglob("*.py"))
    return [read(path.relative_to(PRODUCT).as_posix(), path.read_text()) for path in paths]


def read(place: str, text: str) -> Module:
    return Module(place, text, ast.parse(text))


def dotted(node: ast.AST) -> str:
    """Return a chain of names as it is written, calls in it as `()`: `asyncio.get_running_loop().time`."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return f"{dotted(node.value)}.{node.attr}"
        case ast.Call():
            return f"{dotted(node.func)}()"
    return "?"
