"""Documents: what a parser would choke on is refused first, and everything else is what the parser says."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.document import DEEPEST, MOST_SETTINGS, parse_json, parse_toml


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * DEEPEST + "]" * DEEPEST,
        "a = " + "{b = " * DEEPEST + "1" + "}" * DEEPEST,
        ".".join("a" * DEEPEST) + " = 1",
        f"a = [{', '.join(['0.5'] * 1000)}]",
        'a = "' + "[" * 1000 + '"',
        "a = '''" + "[\n" * 1000 + "'''",
        'a = """' + '["[' * 1000 + '"""""',
        r'a = "\"' + "{" * 1000 + '"',
        "# " + "[" * 1000 + "\na = 1",
        "[a]\n" * 0 + "\n".join(f"[t{n}]\na = {{b = [1, 2]}}" for n in range(200)),
        "\n".join(f"a{n} = 1" for n in range(MOST_SETTINGS)),
        f'"{"." * 1000}" = 1',
    ],
)
def test_what_is_flat_enough_is_what_the_parser_says(text: str) -> None:
    assert parse_toml(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "nested more than 64 deep"),
        ("a = " + "[" * 100_000, "nested more than 64 deep"),
        ('a = "]"\nb = ' + '["]",' * 100, "nested more than 64 deep"),
        (".".join("a" * (DEEPEST + 2)) + " = 1", "nested more than 64 deep"),
        (".".join(['"a"'] * (DEEPEST + 2)) + " = 1", "nested more than 64 deep"),
        (f"[{'.'.join('a' * (DEEPEST + 2))}]", "nested more than 64 deep"),
        ("\n".join(f"a{n} = 1" for n in range(MOST_SETTINGS + 1)), "more than 10000 settings"),
        (f"a = {'9' * 5000}", "too many digits"),
        ("a = [", "Invalid value"),
        ('a = """', "Unterminated string"),
    ],
)
def test_what_is_not_is_one_value_error(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_toml(text)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(plain)
def test_json_is_what_the_parser_says(value: object) -> None:
    assert parse_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[" * 100_000, "nested more than 64 deep"),
        (b'{"a":' * 65, "nested more than 64 deep"),
        (b'["\\"",' * 65, "nested more than 64 deep"),
        (b"9" * 5000, "too many digits"),
        (b"{", "Expecting"),
        (b'"\xff"', "can't decode"),
        (b'"' + b"a" * 1_000_000, "Unterminated"),
    ],
)
def test_json_that_is_not_is_one_value_error(content: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_json(content)


def test_json_may_hold_brackets_in_texts() -> None:
    assert parse_json(json.dumps("[" * 1000).encode()) == "[" * 1000
    assert parse_json(b"\xef\xbb\xbf[1]") == [1]
