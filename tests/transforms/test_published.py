"""The published policies, and that the files which hold a policy are read or refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.transforms import PUBLISHED, Policy, read_policy


def test_they_are_those_of_table_1() -> None:
    assert {name: str(policy) for name, policy in PUBLISHED.items()} == {
        "ats2021-resnet20-cifar100": "3-1-7+43-18-18",
        "ats2021-convnet-cifar100": "21-13-3+7-4-15",
        "ats2021-resnet20-fashion-mnist": "19-15-45+2-43-21",
        "ats2021-convnet-fashion-mnist": "42-28-42+14-48-48",
    }


@pytest.mark.parametrize("policy", PUBLISHED.values(), ids=PUBLISHED)
def test_their_two_branches_share_no_function(policy: Policy) -> None:
    first, second = policy.branches
    assert not set(first) & set(second)


def stored(folder: Path, text: str) -> Path:
    (folder / "policy.toml").write_text(text)
    return folder / "policy.toml"


def test_a_file_is_read_whatever_else_it_holds_and_again_when_it_changes(tmp_path: Path) -> None:
    file = stored(tmp_path, 'policy = "3-1-7+43-18-18"\nseed = 0\n[scores]\n"3-1-7" = 0.2\n')
    assert read_policy(file) == Policy.of("3-1-7+43-18-18")
    assert read_policy(stored(tmp_path, 'policy = "9"')) == Policy.of("9")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("policy = ", "must be a whole result of `leaktight search`. It is damaged"),
        ("seed = 1", "must hold a `policy` like `3-1-7+43-18-18`. It does not; run `leaktight search`."),
        ("policy = 3", "must hold a `policy` like `3-1-7+43-18-18`. It does not; run `leaktight search`."),
        ('policy = "3-77"', "cannot be read. The `branches` of Policy must be made of indices in 0..49. Got 77 instead."),
        ('policy = "x"', "cannot be read. A policy must be indices joined by `-`"),
    ],
)
def test_a_file_without_a_policy_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        read_policy(stored(tmp_path, text))
    assert sentence in str(caught.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="There is no file or folder"):
        read_policy(tmp_path / "none.toml")
    (tmp_path / "policy.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidValue, match="It is damaged"):
        read_policy(tmp_path / "policy.toml")
