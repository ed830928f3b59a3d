"""Kinds of leak are a family: what tells results asks it, and knows no kind by name."""

import ast
from pathlib import Path
from pkgutil import resolve_name

import pytest

import leaktight
from leaktight.core import registry
from leaktight.core.metric import Reading
from leaktight.findings import BatchStatistics, Images, Labels, LeakKind, Property, Samples, Ungraded, leak_kinds
from leaktight.findings.kind import first_kind, layer_measures
from leaktight.findings.rows import rows_of
from leaktight.testing.values import check_value

SOURCE = Path(leaktight.__file__).parent
TELLING = [path for folder in ("findings", "report", "cli") for path in sorted((SOURCE / folder).glob("*.py"))]
OURS = (Images, Samples, Labels, Property, BatchStatistics, Ungraded)
MATHEMATICS = {"leaktight.findings.label_leak", "leaktight.findings.passes"}
"""What kinds rest on that is too long for their own files."""
TITLES = {"leaktight.findings.display"}


def module_of(path):
    return ".".join(["leaktight", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")


def own_modules():
    """Return the modules of the kinds themselves, and of their sections in the report."""
    sections = {name.partition(":")[0] for made in OURS for name in (*made.galleries, *made.sections)}
    return {made.__module__ for made in OURS} | MATHEMATICS | sections


def others():
    return [path for path in TELLING if module_of(path) not in own_modules()]


def docstrings(tree):
    """Return the texts that are statements of their own."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def test_ours_are_registered_and_told_in_their_order():
    found = [kind for kind in leak_kinds() if type(kind).__module__.startswith("leaktight.")]
    assert [type(kind) for kind in found] == list(OURS)
    assert all(registry.classes("leak")[made.model_fields["kind"].default] is made for made in OURS)
    assert leak_kinds()[0] is leak_kinds()[0]


@pytest.mark.parametrize("path", others(), ids=module_of)
def test_nothing_that_tells_results_knows_a_kind(path):
    tree = ast.parse(path.read_text())
    names = {name for made in OURS for name in made.names}
    kinds = {made.model_fields["kind"].default for made in OURS}
    kind_modules = {made.__module__ for made in OURS} | MATHEMATICS
    texts = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and module_of(path) != "leaktight.findings":
            assert node.module not in kind_modules, f"imports {node.module}"
            imported = {alias.name for alias in node.names} if node.module == "leaktight.findings" else set()
            assert imported <= {"LeakKind", "leak_kinds"}, f"imports {imported}"
        if isinstance(node, ast.Constant) and id(node) not in texts and module_of(path) not in TITLES:
            assert node.value not in names, f"names the reading {node.value} in line {node.lineno}"
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            about = any(isinstance(side, ast.Attribute) and side.attr in ("kind", "name", "heading") for side in sides)
            literals = {leaf.value for side in sides for leaf in ast.walk(side) if isinstance(leaf, ast.Constant)}
            assert not (about and literals & kinds), f"compares with a kind's name in line {node.lineno}"


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
