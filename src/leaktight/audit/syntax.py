"""Syntax: what a file of code does, told apart from how it is laid out and what it says about itself."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from leaktight.core.digest import digest

Import = tuple[str, str]
"""A module, and the name that is taken from it; an empty one takes the module itself."""
_BLOCKS = ("body", "orelse", "finalbody")
_LOADERS = frozenset({"import_module", "__import__"})


@dataclasses.dataclass(frozen=True)
class Source:
    """What a file of code does.

    Args:
        does: the digest of its syntax tree without docstrings, so that a comment or another layout changes nothing.
        starts: the digest of what its top level does besides importing and defining; empty if there is nothing else.
        imports: what it imports, anywhere in it.
        names: what its top level imports, by the names it gets there.
    """

    does: str
    starts: str = ""
    imports: tuple[Import, ...] = ()
    names: Mapping[str, Import] = dataclasses.field(default_factory=dict)


def read_source(path: Path, module: str) -> Source:
    r"""Return what a file does.

    Args:
        path: a file of Python, or one of native code, which is taken byte by byte.
        module: the name of its module, which relative imports start from.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     one, other = Path(folder) / "one.py", Path(folder) / "other.py"
        ...     _ = one.write_text("def f():\n    return 1\n")
        ...     _ = other.write_text("def f():  # why\n    'What.'\n    return (1)\n")
        ...     read_source(one, "one").does == read_source(other, "other").does
        True
    """
    content = path.read_bytes()
    try:
        tree = ast.parse(content) if path.suffix == ".py" else None
        if tree is not None:
            _drop_docstrings(tree)
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            return Source(
                does=digest(ast.dump(tree)),
                starts=_starts(tree),
                imports=tuple(dict.fromkeys(pair for pair, _ in _imports(ast.walk(tree), package))),
                names={name: pair for pair, name in _imports(tree.body, package)},
            )
    # Python 2, a template, or an expression nested deeper than Python can follow: a file that was never loaded may hold anything.
    except (SyntaxError, ValueError, RecursionError):
        pass
    return Source(digest(content))


def digest_code(made: Any) -> str:
    """Return the digest of a function, or of a class's own functions, that is in no file.

    Example:
        >>> digest_code(lambda x: x + 1) == digest_code(lambda x: x + 2)
        False
    """
    if isinstance(made, FunctionType):
        return digest(*_code_parts(made.__code__))
    functions = {name: _function(member) for name, member in vars(made).items()}
    return digest(*(f"{name} {digest_code(member)}" for name, member in functions.items() if member is not None))


def _function(member: Any) -> FunctionType | None:
    """Return the function behind what a class holds, if it is one."""
    inner = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return inner if isinstance(inner, FunctionType) else None


def _code_parts(code: CodeType) -> Iterator[Any]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        else:
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _drop_docstrings(tree: ast.Module) -> None:
    """Remove texts that stand alone: docstrings, and what is said below a constant."""
    for node in ast.walk(tree):
        for block in _BLOCKS:
            statements = getattr(node, block, None)
            if isinstance(statements, list):
                statements[:] = [statement for statement in statements if not _is_text(statement)]


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _starts(tree: ast.Module) -> str:
    idle = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    left = [ast.dump(statement) for statement in tree.body if not isinstance(statement, idle) and not _is_list(statement)]
    return digest(*left) if left else ""


def _is_list(statement: ast.stmt) -> bool:
    """Return whether a statement is the list of names that a module offers."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def _imports(nodes: Iterable[ast.AST], package: str) -> Iterator[tuple[Import, str]]:
    """Return everything that is imported, with the name it gets."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.name, ""), alias.asname or alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield (_absolute(node, package), alias.name), alias.asname or alias.name
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if called in _LOADERS and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield (first.value, ""), ""


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """Return the whole name of the module that something is imported from."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])
