"""Syntax: what a file of code does, told apart from how it is laid out and what it says about itself."""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType

from leaktight.core.digest import digest
from leaktight.running.bytecode import all_code
from leaktight.running.plain_value import text_of

Import = tuple[str, str]
"""A module, and the name that is taken from it; an empty one takes the module itself."""
_BLOCKS = ("body", "orelse", "finalbody")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOADERS = frozenset({"import_module", "__import__"})


@dataclasses.dataclass(frozen=True)
class ParsedModule:
    """What a file of code does.

    Args:
        digest: the digest of its syntax tree without docstrings, so that a comment or another layout changes nothing.
        top_level_digest: the digest of what its top level does besides importing and defining; empty if there is
            nothing else.
        imports: what it imports, anywhere in it.
        names: what its top level imports, by the names it gets there.
        code: the compiled code of its functions, by their qualified names; one name may stand for several.
        defined: the qualified names of the functions and classes at its top level and in its classes.
        literals: numbers, texts and collections of them that are written down there, by the qualified names that they
            are given: `LIMIT`, `Net.slope`, and `scale(by)` for the default of an argument.
    """

    digest: str
    top_level_digest: str = ""
    imports: tuple[Import, ...] = ()
    names: Mapping[str, Import] = dataclasses.field(default_factory=dict)
    code: Mapping[str, tuple[CodeType, ...]] = dataclasses.field(default_factory=dict)
    defined: frozenset[str] = frozenset()
    literals: Mapping[str, str] = dataclasses.field(default_factory=dict)


def parse_module(path: Path, module: str) -> ParsedModule:
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
        ...     parse_module(one, "one").digest == parse_module(other, "other").digest
        True
    """
    content = path.read_bytes()
    try:
        tree = ast.parse(content) if path.suffix == ".py" else None
        if tree is not None:
            code = _functions(compile(tree, path, "exec", dont_inherit=True))
            nodes = list(ast.walk(tree))
            _drop_docstrings(nodes)
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            return ParsedModule(
                digest=digest(ast.dump(tree)),
                top_level_digest=_top_level(tree),
                imports=tuple(dict.fromkeys(pair for pair, _ in _imports(nodes, package))),
                names={name: pair for pair, name in _imports(tree.body, package)},
                code=code,
                defined=_definitions(tree, nodes),
                literals=_literals(tree),
            )
    # Python 2, a template, or an expression nested deeper than Python can follow: a file that was never loaded may hold
    # anything.
    except (SyntaxError, ValueError, RecursionError):
        pass
    return ParsedModule(digest(content))


def _functions(code: CodeType) -> dict[str, tuple[CodeType, ...]]:
    found: dict[str, tuple[CodeType, ...]] = {}
    for each in all_code(code):
        found[each.co_qualname] = (*found.get(each.co_qualname, ()), each)
    return found


def _definitions(tree: ast.Module, nodes: list[ast.AST]) -> frozenset[str]:
    """Return what is always defined, and never deleted."""
    deleted = {
        name.id for node in nodes if isinstance(node, ast.Delete) for name in node.targets if isinstance(name, ast.Name)
    }
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(
        name for name, node in _statements(tree.body) if isinstance(node, named) and node.name not in deleted
    )


def _statements(body: list[ast.stmt], above: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Return the statements of a module and of its classes, each with the qualified name that it defines or assigns.

    Other statements are left out.
    """
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield above + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _statements(node.body, f"{above}{node.name}.")
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign) and len(node.targets) == 1
            else getattr(node, "target", None)
        )
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name):
            yield above + target.id, node


def _literals(tree: ast.Module) -> dict[str, str]:
    found: dict[str, str] = {}
    several = set[str]()
    for name, node in _statements(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pairs = [(f"{name}({argument})", default) for argument, default in _defaults(node.args)]
        else:
            pairs = [(name, node.value)] if isinstance(node, ast.Assign | ast.AnnAssign) and node.value else []
        for key, expression in pairs:
            several |= {key} & found.keys()
            try:
                found[key] = text_of(ast.literal_eval(expression)) or ""
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                several.add(key)
    # A name that is assigned again, in a condition or a loop too, may hold anything.
    stores = Counter(_assigned_names(tree.body))
    several |= {name for name in found if stores[name] > 1}
    return {key: text for key, text in found.items() if key not in several and text}


def _assigned_names(body: Iterable[ast.AST], above: str = "") -> Iterator[str]:
    """Return the qualified names that a module and its classes assign, as often as they do."""
    for node in body:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield above + node.id
        elif isinstance(node, ast.ClassDef):
            yield from _assigned_names(node.body, f"{above}{node.name}.")
        elif not isinstance(node, _SCOPES):
            yield from _assigned_names(ast.iter_child_nodes(node), above)


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """Return the arguments of a function that have a default."""
    plain = [*arguments.posonlyargs, *arguments.args]
    if arguments.defaults:
        yield from zip(
            (argument.arg for argument in plain[-len(arguments.defaults) :]), arguments.defaults, strict=True
        )
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield argument.arg, default


def _drop_docstrings(nodes: list[ast.AST]) -> None:
    """Remove texts that stand alone: docstrings, and what is said below a constant."""
    for node in nodes:
        for block in _BLOCKS:
            statements = getattr(node, block, None)
            if isinstance(statements, list):
                statements[:] = [statement for statement in statements if not _is_text(statement)]


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _top_level(tree: ast.Module) -> str:
    idle = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    left = [
        ast.dump(statement) for statement in tree.body if not isinstance(statement, idle) and not _is_list(statement)
    ]
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
