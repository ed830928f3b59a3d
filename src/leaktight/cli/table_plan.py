"""A plan for a person's own table: `leaktight init --data my.csv:label` reads its columns and fills the template in."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from leaktight.cli.table_options import TableOptions
from leaktight.core.display import join_words
from leaktight.core.errors import InvalidValue
from leaktight.data import from_text
from leaktight.data.column import is_missing
from leaktight.data.survey import ColumnSurvey, survey_column
from leaktight.data.table import Csv, read_cells

MOST_CLASSES = 100
PARTICIPANTS, BATCH = 4, 32
"""How many share a table, and how many examples a training batch has, where the table is large enough."""
STEPS, SMALLEST, LARGEST = 11, 16, 1024
"""In split learning, how many steps a pass should have about, and how small and large its batches may be."""
MOST_ROWS = 20_000
"""In split learning every message of every pass is kept: more training rows than this are left out."""
_COMMENT = 24


def fill_in(template: str, data: str, options: TableOptions, split: bool) -> str:
    """Return a plan for a table: the template with data, model and sizes that fit it.

    Args:
        template: the plan of the scenario, as `leaktight init` writes it without data.
        data: the table, as on the command line: `my.csv:label`.
        options: how it is read, where the person says so.
        split: whether two parties share its columns.

    Raises:
        InvalidValue: it is no table, or its label does not name classes.
    """
    source = from_text(data)
    if not isinstance(source, Csv):
        raise InvalidValue(
            f"`--data` must name a table (.csv, .tsv) whose columns can be read, with `:column` for the label. Got "
            f"`{data}` instead; write other data into the plan by hand."
        )
    source = options.apply(source)
    header, rows = read_cells(source.place, source.columns, source.separator)
    label = header[source.label_in(header, source.place)]
    cells = {name: [row[at] for row in rows] for at, name in enumerate(header)}
    classes = _classes(label, cells[label], source, split)
    columns = [survey_column(name, cells[name]) for name in header if name != label]
    settings = _settings(source, label, classes, columns, options, split)
    kept = [one for one in columns if one.name not in settings["ignore"]]
    if not kept:
        raise InvalidValue(f"The file `{source.place}` has no column to learn from beside `{label}`. Add some.")
    train = int(len(rows) * (1 - source.test_share))
    text = _section(template, "scenario.data", _data_lines(settings, columns, classes, train, split))
    if split:
        size = max(1, min(_power_near(min(train, MOST_ROWS) / STEPS), train))
        text = _set(_set(text, "batch_size", str(size)), "batch_sizes", f"[{size}]")
        return _set_party(text, kept)
    participants = next((count for count in (PARTICIPANTS, 2) if train // count >= BATCH), 1)
    size = max(1, min(BATCH, train // participants // 2))
    text = _set(_set(text, "participants", str(participants)), "batch_size", str(size))
    model = ['kind = "mlp"            # or your own: kind = "factory", function = "my_project.models:network"']
    return _section(text, "scenario.model", [*model, "hidden = [64, 64]"])


def _classes(label: str, cells: Sequence[str], source: Csv, split: bool) -> Counter[str]:
    """Return how many rows each class has, if the label can be one."""
    counts = Counter(cell for cell in cells if not is_missing(cell))
    if not 2 <= len(counts) <= MOST_CLASSES:
        raise InvalidValue(
            f"The label `{label}` of `{source.place}` must name 2 to {MOST_CLASSES} classes. Got {len(counts)} "
            f"different values; name another column, as in `--data {source.place}:column`."
        )
    if split and len(counts) != 2:
        raise InvalidValue(
            f"The label `{label}` of `{source.place}` must name two classes for split learning. Got {len(counts)}; "
            "make it yes or no, or leave `--scenario split` out."
        )
    return counts


def _settings(
    source: Csv, label: str, classes: Counter[str], columns: Sequence[ColumnSurvey], options: TableOptions, split: bool
) -> dict[str, Any]:
    given = options.settings
    categorical = given.get("categorical", [])
    hashed = given.get("words", "hashed" if split else "one_hot") != "one_hot"
    # Ids need no column for each word, so that many words do no harm.
    odd = [
        one.name
        for one in columns
        if not one.is_input and one.name not in categorical and not (hashed and one.holds == "text")
    ]
    ignore = list(dict.fromkeys([*given.get("ignore", []), *odd]))
    kept = [one for one in columns if one.name not in ignore]
    wordy = any(one.holds in ("words", "text") or one.name in categorical for one in kept)
    rarer = min(classes, key=lambda name: (classes[name], name)) if len(classes) == 2 else ""
    return {
        "kind": source.kind,
        "path": source.path,
        "label": label,
        "positive": given.get("positive", rarer),
        "separator": given.get("separator", ""),
        "columns": list(given.get("columns", [])),
        "ignore": ignore,
        "categorical": list(categorical),
        "missing": given.get("missing", "fill" if any(one.missing for one in kept) else ""),
        "words": given.get("words", "hashed" if split and wordy else ""),
        "buckets": given.get("buckets", ""),
    }


def _data_lines(
    settings: Mapping[str, Any], columns: Sequence[ColumnSurvey], classes: Counter[str], train: int, split: bool
) -> list[str]:
    """Return the settings of a table as TOML, each that was chosen here with its reason."""
    ignored = {one.name: one.reason for one in columns if one.name in settings["ignore"]}
    kept = [one for one in columns if one.name not in ignored]
    holes = [f"{one.name} ({one.missing})" for one in kept if one.missing]
    counts = join_words([f"{name} ({count})" for name, count in classes.most_common()][:5])
    why = {
        "label": f"rows of each class: {counts}" + (", ..." if len(classes) > 5 else ""),
        "positive": "the class that counts as positive, here the rarer one",
        "missing": f"empty cells in {join_words(holes)}" if holes else "",
        "words": "a number that follows from a word alone, for embeddings",
    }
    lines = []
    for name, value in settings.items():
        if name == "ignore" and value:
            lines += ["ignore = [", *(_line(f"    {quote(one)},", ignored.get(one, "")) for one in value), "]"]
        elif value not in ("", []):
            lines.append(_line(f"{name} = {_toml(value)}", why.get(name, "")))
    codes = [one.name for one in kept if one.may_be_codes and one.name not in settings["categorical"]]
    if codes:
        lines.append(_line(f"# categorical = {_toml(codes)}", "numbers with few values: name those that are codes"))
    if split and train > MOST_ROWS:
        lines.append(_line(f"train_limit = {MOST_ROWS}", f"of {train}: every message of every pass is kept"))
    return lines


def _set_party(text: str, kept: Sequence[ColumnSurvey]) -> str:
    """Deal the columns out, half and half, and say so."""
    names = [one.name for one in kept]
    # The feature party must have a column.
    first = (len(names) + 1) // 2
    said = (
        f"# Who holds which columns is a guess, half and half: the feature party has {join_words(names[:first])}.\n"
        '# Name here what the label party really holds, beside the labels; `*` stands for any text, as in "I*".'
    )
    return re.sub(
        r"^label_party = .*$",
        lambda _: f"{said}\nlabel_party = {_toml(names[first:])}",
        text,
        count=1,
        flags=re.MULTILINE,
    )


def _section(text: str, name: str, lines: Sequence[str]) -> str:
    """Return a document with other lines in one of its tables."""
    body = "\n".join(lines)
    return re.sub(
        rf"^\[{re.escape(name)}\]\n(?:.+\n)*", lambda _: f"[{name}]\n{body}\n", text, count=1, flags=re.MULTILINE
    )


def _set(text: str, name: str, value: str) -> str:
    """Return a document with another value of its first setting of a name; the comment stays where it is."""

    def line(found: re.Match[str]) -> str:
        _, hash_sign, comment = found[0].partition("#")
        return _line(f"{name} = {value}", comment.strip()) if hash_sign else f"{name} = {value}"

    return re.sub(rf"^{name} = .*$", line, text, count=1, flags=re.MULTILINE)


def _power_near(number: float) -> int:
    """Return the power of two that is at most a number, within what a batch may have.

    Example:
        >>> _power_near(130), _power_near(3), _power_near(10**6)
        (128, 16, 1024)
    """
    size = SMALLEST
    while 2 * size <= min(number, LARGEST):
        size *= 2
    return size


def quote(text: str) -> str:
    r"""Return a text as TOML writes it.

    Example:
        >>> print(quote('my "own" table'))
        "my \"own\" table"
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return quote(value) if isinstance(value, str) else str(value)


def _line(text: str, comment: str) -> str:
    # What a column is called may hold a line break, which would end the comment.
    return f"{text:<{_COMMENT - 1}} # {' '.join(comment.split())}" if comment else text
