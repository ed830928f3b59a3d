"""The door: grpc comes in here and nowhere else, and only when it is needed."""

import ast
import subprocess
import sys
from pathlib import Path

import leaktight

SOURCE = Path(leaktight.__file__).parent


def test_only_the_door_imports_grpc():
    importers = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "grpc" for name in names):
                importers.add(path.relative_to(SOURCE).as_posix())
    assert importers == {"wire/door.py"}


def test_importing_the_wire_does_not_import_grpc():
    code = "import sys, leaktight.wire; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
