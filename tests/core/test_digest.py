from __future__ import annotations

import torch

from leaktight.core.digest import digest, digest_archive, tensor_parts


def test_texts_and_bytes_count_alike_and_their_ends_count() -> None:
    assert digest("é") == digest("é".encode())
    assert len({digest(), digest(""), digest("", ""), digest("ab"), digest("a", "b")}) == 5


def test_every_bit_name_type_and_shape_of_a_tensor_counts() -> None:
    plain = torch.tensor([0.0, 1.0])
    others = [
        {"w": torch.tensor([-0.0, 1.0])},
        {"v": plain},
        {"w": plain.double()},
        {"w": plain.view(1, 2)},
        {"w": plain.view(torch.int32)},
        {"w": plain, "b": plain},
        {},
    ]
    made = [digest(*tensor_parts(tensors)) for tensors in ({"w": plain}, *others)]
    assert len(set(made)) == len(made)
    assert digest(*tensor_parts({"w": torch.eye(3)[:, 1:]})) == digest(
        *tensor_parts({"w": torch.eye(3)[:, 1:].contiguous()})
    )


def test_everything_in_an_archive_counts() -> None:
    one = torch.ones(2)
    archives = [
        ({"w": one, "steps": 3}, {"format": 1}),
        ({"steps": 3, "w": one}, {"format": 1}),
        ({"w": one, "steps": 4}, {"format": 1}),
        ({"w": one, "steps": 3}, {"format": 2}),
        ({"w": 2 * one, "steps": 3}, {"format": 1}),
    ]
    assert len({digest_archive(*archive) for archive in archives}) == len(archives)
    assert digest_archive({}, {"a": 1, "b": 2}) == digest_archive({}, {"b": 2, "a": 1})
