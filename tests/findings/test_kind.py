"""Kinds of leak are a family: what tells results asks it, and knows no kind by name."""

import ast
import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

import leaktight
from leaktight.core import registry
from leaktight.core.metric import Metric, Reading
from leaktight.findings import BatchStatistics, Images, Labels, LeakKind, Property, Samples, Ungraded, leak_kinds
from leaktight.findings.kind import first_kind, layer_measures
from leaktight.findings.rows import rows_of
from leaktight.testing.values import check_value

SOURCE = Path(leaktight.__file__).parent
FOLDERS = sorted({path.parent for path in SOURCE.rglob("*.py")} - {SOURCE / "metrics"})
"""Metrics make the readings, so they name them."""
OURS = (Images, Samples, Labels, Property, BatchStatistics, Ungraded)
MATHEMATICS = {"leaktight.findings.label_leak", "leaktight.findings.passes"}
"""What kinds rest on that is too long for their own files."""
TELLERS = {"findings", "report", "api", "cli"}
"""Folders that tell results; plans and searches name the metrics that they ask for."""
READINGS = {"leaktight.core.probe"}
"""Where a reading is made beside metrics."""
LISTS = {"leaktight.data.idx"}
"""Lists of other things that are called the same: the files of a data set."""


def module_of(path):
    return ".".join(["leaktight", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")


def own_modules():
    """Return the modules of the kinds themselves, and of their sections in the report."""
    sections = {name.partition(":")[0] for made in OURS for name in (*made.galleries, *made.sections)}
    return {made.__module__ for made in OURS} | MATHEMATICS | sections


def others(folder):
    """Return the files of a folder that may know no kind; papers name the readings that they print, as published."""
    if SOURCE / "papers" in (folder, *folder.parents):
        return []
    return [path for path in sorted(folder.glob("*.py")) if module_of(path) not in own_modules() | READINGS]


def docstrings(tree):
    """Return the texts that are statements of their own."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def test_ours_are_registered_and_told_in_their_order():
    found = [kind for kind in leak_kinds() if type(kind).__module__.startswith("leaktight.")]
    assert [type(kind) for kind in found] == list(OURS)
    assert all(registry.classes("leak")[made.model_fields["kind"].default] is made for made in OURS)
    assert leak_kinds()[0] is leak_kinds()[0]


def items(node):
    """Return what a literal lists."""
    listed = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
    return {item.value for item in listed if isinstance(item, ast.Constant)}


def knowledge_in(path, tree):
    """Return what a file knows of single kinds of leak: their classes, readings and names."""
    kinds = {made.model_fields["kind"].default for made in OURS}
    names = {name for made in OURS for name in made.names}
    modules = {made.__module__ for made in OURS} | MATHEMATICS
    texts = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and module_of(path) != "leaktight.findings":
            imported = {alias.name for alias in node.names} if node.module == "leaktight.findings" else set()
            if node.module in modules or imported - {"LeakKind", "leak_kinds"}:
                yield f"imports {sorted(imported)} of {node.module}"
            if re.match(r"leaktight\.metrics\b", node.module or ""):
                values = [resolve_name(f"{node.module}:{alias.name}") for alias in node.names]
                yield from (
                    f"imports the reading {value}" for value in values if isinstance(value, str) and value in names
                )
                metrics = [value for value in values if isinstance(value, type) and issubclass(value, Metric)]
                if path.relative_to(SOURCE).parts[0] in TELLERS:
                    yield from (
                        f"imports the metric {one.__name__}" for one in metrics if names & set(one.quantities())
                    )
        if isinstance(node, ast.Constant) and id(node) not in texts and node.value in names:
            yield f"names the reading {node.value} in line {node.lineno}"
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            about = any(isinstance(side, ast.Attribute) and side.attr in ("kind", "name", "heading") for side in sides)
            literals = {leaf.value for side in sides for leaf in ast.walk(side) if isinstance(leaf, ast.Constant)}
            if about and literals & kinds:
                yield f"compares with a kind's name in line {node.lineno}"
        if isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.Set) and len(items(node) & kinds) > 1:
            yield from () if module_of(path) in LISTS else (f"lists kinds in line {node.lineno}",)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(SOURCE)))
def test_nothing_knows_a_kind_but_its_own_file(folder):
    known = {module_of(path): list(knowledge_in(path, ast.parse(path.read_text()))) for path in others(folder)}
    assert not {module: told for module, told in known.items() if told}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("from leaktight.findings import Images", "imports"),
        ("from leaktight.findings.labels import Labels", "imports"),
        ("from leaktight.metrics.leak_auc_passes import CEILING", "imports the reading"),
        ("from leaktight.metrics import PropertyAuc, standard", "imports the metric"),
        ("from leaktight.metrics.image import PSNR", "imports the metric"),
        ("row.reading('property_auc')", "names the reading"),
        ("judgement.kind.kind == 'samples'", "compares"),
        ("ORDER = ['images', 'labels']", "lists kinds"),
        ("TITLES = {'images': 'Images', 'property': 'A property'}", "lists kinds"),
    ],
)
def test_what_knows_a_kind_is_noticed(code, told):
    [fault] = knowledge_in(SOURCE / "report" / "page.py", ast.parse(code))
    assert fault.startswith(told)


@pytest.mark.parametrize("made", OURS)
def test_kinds_know_nothing_of_one_another(made):
    others = {other.__module__ for other in OURS} - {made.__module__}
    tree = ast.parse((SOURCE.parent / f"{made.__module__.replace('.', '/')}.py").read_text())
    assert not {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)} & others


def test_templates_name_no_reading():
    names = {name for made in OURS for name in made.names}
    own = {"pictures.html", "generated.html", "labels.html", "norms.html"}
    for path in (SOURCE / "report").glob("*.html"):
        if path.name not in own:
            assert not [name for name in names if f"'{name}'" in path.read_text() or f'"{name}"' in path.read_text()]


@pytest.mark.parametrize("made", OURS)
def test_a_kind_states_what_others_need(made):
    kind = made()
    check_value(kind)
    assert kind.heading
    assert kind.noun
    assert kind.names
    assert all(callable(resolve_name(name)) for name in (*kind.galleries, *kind.sections))
    assert len({column.title for column in kind.columns()}) == len(kind.columns())
    others = {name for other in OURS if other is not made for name in other.names}
    assert not others & set(kind.names)


def test_what_no_kind_is_about_is_an_image_by_default(made):
    reading = Reading(name="unheard_of", value=0.5, low=0.4, high=0.6, chance=0.1, leaks="high")
    (row,) = rows_of([made.record(psnr=None, extra=(reading,))])
    assert first_kind(row) == Images()
    (row,) = rows_of([made.record(psnr=None, extra=(reading.model_copy(update={"name": "recognised"}), reading))])
    assert first_kind(row) == Samples()
    assert Images().reading(row) is None


def test_layers_are_ranked_by_what_kinds_state():
    assert [measure.risk for measure in layer_measures()] == ["property", "labels", "reconstruction"]


def test_a_kind_without_a_reading_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        LeakKind()
