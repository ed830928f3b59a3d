"""Dependencies: the files of code that a result comes from, each with a digest of what it does.

They are found by following imports.

A person's own code is followed into every module that it loads, wherever that is. Of the standard library nothing
counts, and of an installed package its version. Leaktight's own code counts in a checkout; an installed one is known by
its version.
"""

from __future__ import annotations

import dataclasses
import sys
import sysconfig
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType

import leaktight
from leaktight.core.digest import digest
from leaktight.core.registry import PLUGINS
from leaktight.running.live_module import deviations, is_typed
from leaktight.running.syntax import Import, ParsedModule, parse_module

PACKAGE = "leaktight"
PRESENTATION = frozenset(
    {"plans", "running", "findings", "report", "api", "flower", "wire", "papers", "cli", "testing", "core.errors"}
)
"""Parts of Leaktight that are not followed into.

They plan, carry and tell results, and a changed sentence there changes no number.
"""
NUMERIC_PACKAGES = {
    "torch": "torch",
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "PIL": "pillow",
    "opacus": "opacus",
}
"""The packages whose versions count in every result, by the name under which they are imported."""
VERSION = "the version of "
_INSTALLED = frozenset({"site-packages", "dist-packages"})


@dataclasses.dataclass(frozen=True)
class _Reading:
    """What was read of a file, when, and which module was loaded then.

    If what the file says now was not loaded, that is kept too.
    """

    module: ModuleType | None
    token: Hashable
    content: ParsedModule
    edited: ParsedModule | None = None


_read: dict[str, _Reading] = {}


def digest_loaded(name: str) -> str:
    """Return a digest of what a module does.

    It is of the module's file and, where the module is loaded and does something else, of that too.
    """
    content, module = read_module(name), sys.modules.get(name)
    # What a person's own constants hold counts only where code that is used names them.
    lines = deviations(module, content, constants=is_ours(name)) if module is not None else []
    return digest(content.digest, *lines) if lines else content.digest


def trace(
    modules: Iterable[str], alone: Iterable[str] = (), look: Callable[[str], str] = digest_loaded
) -> dict[str, str]:
    """Return a digest for each file that modules depend on, and the version of each installed package.

    Both go by a name that a person knows.

    Args:
        modules: names of modules; their imports are followed.
        alone: names of modules of Leaktight; their imports are not followed.
        look: returns the digest of a module, and may remember it.

    Example:
        >>> files = trace(["leaktight.defences.gaussian"])
        >>> "leaktight/defences/noise.py" in files, "leaktight/defences/laplace.py" in files
        (True, False)
    """
    files: dict[str, str] = {}
    for name in alone if is_checkout() else ():
        files[title_of_file(name)] = look(name)
    roots = list(modules)
    # Only of the roots: what other modules hold depends on what was called before.
    waiting, seen = [*roots, *(name for root in roots for name in _namespace_modules(root))], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if not is_ours(name):
            waiting += _follow_own(name, files, look)
        elif is_checkout():
            waiting += _follow_ours(name, files, look)
    return dict(sorted(files.items()))


@cache
def is_checkout() -> bool:
    """Return whether Leaktight runs from a folder in which someone may edit it, not as an installed package."""
    return _INSTALLED.isdisjoint(Path(leaktight.__file__).parts)


def file_of(name: str) -> Path | None:
    """Return the file of a module, which is not loaded if it was not; None if there is none."""
    module = sys.modules.get(name)
    if module is not None:
        file = getattr(module, "__file__", None)
        # Code that comes through a pipe calls its file `<stdin>`.
        return Path(file) if file and not is_typed(name) else None
    spec = _spec(name)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def is_own(name: str) -> bool:
    """Return whether a module is a person's own code.

    Code of Leaktight, of Python or of an installed package that is no plugin is not.
    """
    top = name.partition(".")[0]
    if is_ours(name) or top in NUMERIC_PACKAGES:
        return False
    path = file_of(name) or file_of(top)
    if path is None:
        return is_typed(name)
    return top in plugin_packages() or not (_is_installed(path) or _is_standard(path))


def _follow_ours(name: str, files: dict[str, str], look: Callable[[str], str]) -> Iterator[str]:
    """Add a module of Leaktight and return what it imports: of a package, only the modules whose names it takes."""
    content = read_module(name)
    files[title_of_file(name)] = look(name)
    for package in _parents(name):
        if read_module(package).top_level_digest:
            files.setdefault(title_of_file(package), read_module(package).top_level_digest)
    yield from (
        module for target in content.imports if is_ours(module := _target(target)) and not _is_presentation(module)
    )


def _target(target: Import) -> str:
    """Return the module that defines what is imported, through packages of Leaktight that only hand it on."""
    module, name = target
    if not is_ours(module) or not name or not _is_package(module):
        return module
    if name in read_module(module).names:
        return _target(read_module(module).names[name])
    return f"{module}.{name}" if file_of(f"{module}.{name}") else module


def _follow_own(name: str, files: dict[str, str], look: Callable[[str], str]) -> Iterator[str]:
    """Add a module that is not of Leaktight and return every module that was loaded with it."""
    path = file_of(name)
    if path is None:
        # A folder without code of its own, something built in, or an optional import that is not there.
        return
    top = name.partition(".")[0]
    if top in NUMERIC_PACKAGES:
        return
    if top not in plugin_packages():
        if _is_installed(path):
            files.update(_versions(top) or {title_of_file(name): read_module(name).digest})
            return
        if _is_standard(path):
            return
    content = read_module(name)
    files[title_of_file(name)] = look(name)
    yield from _parents(name)
    for module, taken in content.imports:
        if not is_ours(module):
            yield from (*_parents(module), module)
            if taken and file_of(f"{module}.{taken}"):
                yield f"{module}.{taken}"
        elif not _is_presentation(defining := _target((module, taken))):
            yield defining


def _namespace_modules(name: str) -> Iterator[str]:
    """Return where the functions and classes in the namespace of a person's own module come from.

    It does not matter how they got there.
    """
    module = sys.modules.get(name)
    if module is None or is_ours(name) or name.partition(".")[0] in NUMERIC_PACKAGES:
        return
    for value in list(vars(module).values()):
        origin = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(value, ModuleType | FunctionType | type) and isinstance(origin, str) and not is_ours(origin):
            yield origin


@cache
def plugin_packages() -> frozenset[str]:
    """Return the packages whose entry points name parts for Leaktight.

    They are a person's own code, even where they are installed.
    """
    return frozenset(point.module.partition(".")[0] for point in metadata.entry_points(group=PLUGINS)) - {PACKAGE}


@cache
def _versions(package: str) -> dict[str, str]:
    """Return the version of an installed package; nothing if nobody says which."""
    try:
        return {f"{VERSION}{package}": metadata.version(package)}
    except metadata.PackageNotFoundError:
        names = _distributions().get(package, [])
        return {f"{VERSION}{name}": metadata.version(name) for name in sorted(set(names))}


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def read_module(name: str) -> ParsedModule:
    """Return what a module's file does.

    If it was edited and not loaded again, this is what it did before, if it was looked at then.

    A file that cannot be read has no code that anything could agree with: what is loaded counts in its place.
    """
    module, known, token = sys.modules.get(name), _read.get(name), _token(name)
    is_same = known is not None and known.module is module
    if known is None or not is_same or known.token != token:
        before, known = known, _Reading(module, token, _parse(name))
        if before is not None and is_same and module is not None and deviations(module, known.content, constants=True):
            known = _Reading(module, token, before.content, known.content)
    elif known.edited is not None and module is not None and not deviations(module, known.edited, constants=True):
        # It was loaded again into the same module.
        known = _Reading(module, token, known.edited)
    _read[name] = known
    return known.content


def _token(name: str) -> Hashable:
    """Return what changes when a module's file is written; None for one that cannot be read."""
    try:
        path = file_of(name)
        state = path.stat() if path is not None else None
    except OSError:
        return None
    return (str(path), state.st_size, state.st_mtime_ns) if state is not None else None


def _parse(name: str) -> ParsedModule:
    path = file_of(name)
    try:
        return parse_module(path, name) if path is not None else ParsedModule("")
    except OSError:
        return ParsedModule("")


def _spec(name: str) -> ModuleSpec | None:
    """Return where a module that is not loaded would come from; its packages are not loaded for it either."""
    parent = name.rpartition(".")[0]
    if not parent:
        try:
            return find_spec(name)
        except (ImportError, ValueError, AttributeError):
            return None
    module = sys.modules.get(parent)
    if module is not None:
        places = getattr(module, "__path__", ())
    else:
        above = _spec(parent)
        places = (above.submodule_search_locations or ()) if above is not None else ()
    return PathFinder.find_spec(name, list(places))


def title_of_file(name: str) -> str:
    """Return the name of a module's file, from the folder that its package is in."""
    path = file_of(name)
    if path is None or name in ("__main__", "__mp_main__"):
        return path.name if path else name
    return (
        "/".join([*name.split(".")[:-1], path.name])
        if path.stem != "__init__"
        else f"{name.replace('.', '/')}/{path.name}"
    )


def _parents(name: str) -> list[str]:
    """Return the packages that a module is in, which were loaded before it."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def is_ours(name: str) -> bool:
    """Return whether a module is of Leaktight."""
    return name.partition(".")[0] == PACKAGE


def _is_presentation(name: str) -> bool:
    parts = name.split(".")
    return not PRESENTATION.isdisjoint({".".join(parts[1:2]), ".".join(parts[1:3])})


def _is_package(name: str) -> bool:
    path = file_of(name)
    return path is not None and path.name == "__init__.py"


def _is_installed(path: Path) -> bool:
    return not _INSTALLED.isdisjoint(path.parts)


def _is_standard(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _standard_folders())


@cache
def _standard_folders() -> tuple[Path, ...]:
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    return (*folders, *(folder.resolve() for folder in folders))
