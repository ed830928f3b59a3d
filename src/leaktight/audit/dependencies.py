"""Dependencies: the files of code that a result comes from, found by following imports, each with a digest of what it does.

A person's own code is followed into every module that it loads, wherever that is. Of the standard library nothing counts, and of an
installed package its version. Leaktight's own code counts in a checkout; an installed one is known by its version.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType

import leaktight
from leaktight.audit.syntax import Import, Source, read_source
from leaktight.core.registry import PLUGINS

PACKAGE = "leaktight"
TELLING = frozenset({"audit", "report", "flower", "wire", "papers", "cli", "testing", "core.errors"})
"""Parts of Leaktight that are not followed into: they plan, carry and tell results, and a changed sentence there changes no number."""
COMPUTING = {
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
_read: dict[str, tuple[object, Source]] = {}


def trace(modules: Iterable[str], alone: Iterable[str] = ()) -> dict[str, str]:
    """Return a digest for each file that modules depend on, and the version of each installed package, by a name that a person knows.

    Args:
        modules: names of modules; their imports are followed.
        alone: names of modules of Leaktight; their imports are not followed.

    Example:
        >>> files = trace(["leaktight.defences.gaussian"])
        >>> "leaktight/defences/noise.py" in files, "leaktight/defences/laplace.py" in files
        (True, False)
    """
    files: dict[str, str] = {}
    for name in alone if is_checkout() else ():
        files[_title(name)] = _source(name).does
    roots = list(modules)
    # Of the others, what they hold depends on what was called before.
    waiting, seen = [*roots, *(name for root in roots for name in _held(root))], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if not _is_ours(name):
            waiting += _follow_own(name, files)
        elif is_checkout():
            waiting += _follow_ours(name, files)
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
        return Path(file) if file else None
    spec = _spec(name)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _follow_ours(name: str, files: dict[str, str]) -> Iterator[str]:
    """Add a module of Leaktight and return what it imports: of a package, only the modules whose names it takes."""
    source = _source(name)
    files[_title(name)] = source.does
    for package in _parents(name):
        if _source(package).starts:
            files.setdefault(_title(package), _source(package).starts)
    yield from (module for target in source.imports if _is_ours(module := _target(target)) and not _is_telling(module))


def _target(target: Import) -> str:
    """Return the module that defines what is imported, through packages of Leaktight that only hand it on."""
    module, name = target
    if not _is_ours(module) or not name or not _is_package(module):
        return module
    if name in _source(module).names:
        return _target(_source(module).names[name])
    return f"{module}.{name}" if file_of(f"{module}.{name}") else module


def _follow_own(name: str, files: dict[str, str]) -> Iterator[str]:
    """Add a module that is not of Leaktight and return every module that was loaded with it."""
    path = file_of(name)
    if path is None:
        # A folder without code of its own, something built in, or an optional import that is not there.
        return
    top = name.partition(".")[0]
    if top in COMPUTING:
        return
    if top not in plugin_packages():
        if _is_installed(path):
            files.update(_versions(top) or {_title(name): _source(name).does})
            return
        if _is_standard(path):
            return
    source = _source(name)
    files[_title(name)] = source.does
    yield from _parents(name)
    for module, taken in source.imports:
        if not _is_ours(module):
            yield from (*_parents(module), module)
            if taken and file_of(f"{module}.{taken}"):
                yield f"{module}.{taken}"
        elif not _is_telling(defining := _target((module, taken))):
            yield defining


def _held(name: str) -> Iterator[str]:
    """Return where the functions and classes in the namespace of a person's own module come from, however they got there."""
    module = sys.modules.get(name)
    if module is None or _is_ours(name) or name.partition(".")[0] in COMPUTING:
        return
    for value in list(vars(module).values()):
        origin = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(value, ModuleType | FunctionType | type) and isinstance(origin, str) and not _is_ours(origin):
            yield origin


@cache
def plugin_packages() -> frozenset[str]:
    """Return the packages whose entry points name parts for Leaktight: a person's own code, even where it is installed."""
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


def _source(name: str) -> Source:
    """Return what a module's file does, as it was when first asked for: a module that was loaded and then edited still does what it did."""
    path, module = file_of(name), sys.modules.get(name)
    known = _read.get(name)
    if known is not None and module is not None and known[0] is module:
        return known[1]
    try:
        state = path.stat() if path is not None else None
        token = (str(path), state.st_size, state.st_mtime_ns) if state else None
        if known is None or token is None or known[0] != token:
            known = token, read_source(path, name) if path is not None else Source("")
    except OSError:
        # It was removed after it was loaded.
        known = None, Source("")
    _read[name] = (module if module is not None else known[0]), known[1]
    return known[1]


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


def _title(name: str) -> str:
    """Return the name of a module's file, from the folder that its package is in."""
    path = file_of(name)
    if path is None or name in ("__main__", "__mp_main__"):
        return path.name if path else name
    return "/".join([*name.split(".")[:-1], path.name]) if path.stem != "__init__" else f"{name.replace('.', '/')}/{path.name}"


def _parents(name: str) -> list[str]:
    """Return the packages that a module is in, which were loaded before it."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == PACKAGE


def _is_telling(name: str) -> bool:
    parts = name.split(".")
    return not TELLING.isdisjoint({".".join(parts[1:2]), ".".join(parts[1:3])})


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
