import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.defence import Chain, Undefended
from leaktight.defences import DPSGD, GaussianNoise, LaplaceNoise, Pruning, TopK
from leaktight.findings.sweep import sweeps


def sweeps_of(defences):
    return [(s.family, s.field, [value for value, _ in s.members]) for s in sweeps(defences)]


def chain(share, std):
    return Chain(links=(TopK(share=share), GaussianNoise(std=std)))


def test_members_go_from_weak_to_strong_whichever_way_the_field_counts():
    found = sweeps_of([GaussianNoise(std=s) for s in (1, 0.01, 0.1)] + [TopK(share=s) for s in (0.01, 0.3, 0.1)])
    assert found == [("Gaussian noise", "std", [0.01, 0.1, 1]), ("top-k", "share", [0.3, 0.1, 0.01])]


def test_kinds_and_settings_that_are_no_numbers_are_not_mixed():
    defences = [
        GaussianNoise(std=0.1),
        LaplaceNoise(scale=0.1),
        TopK(share=0.1),
        TopK(share=0.2, scope="tensor"),
        DPSGD(),
    ]
    assert sweeps(defences) == ()
    flags = [TopK(share=share, residual=residual) for share in (0.1, 0.2) for residual in (False, True)]
    assert [family for family, _, _ in sweeps_of(flags)] == ["top-k", "top-k (residual True)"]


def test_of_a_grid_the_longer_side_is_swept():
    grid = [TopK(share=share, noise=noise) for share, noise in itertools.product((0.05, 0.3), (0.001, 0.01, 0.1))]
    assert sweeps_of(grid) == [
        ("top-k (share 0.05)", "noise", [0.001, 0.01, 0.1]),
        ("top-k (share 0.3)", "noise", [0.001, 0.01, 0.1]),
    ]


def test_of_a_square_grid_the_strength_is_swept():
    grid = [TopK(share=share, noise=noise) for share, noise in itertools.product((0.05, 0.3), (0.001, 0.1))]
    assert sweeps_of(grid) == [
        ("top-k (noise 0.001)", "share", [0.3, 0.05]),
        ("top-k (noise 0.1)", "share", [0.3, 0.05]),
    ]


def test_a_number_inside_a_chain_is_swept_and_the_others_stay_in_the_name():
    assert sweeps_of([chain(0.05, std) for std in (0.1, 0.01)]) == [
        ("top-k (share 0.05) + Gaussian noise", "std", [0.01, 0.1])
    ]
    assert sweeps_of([chain(share, 0.1) for share in (0.05, 0.3)]) == [
        ("top-k + Gaussian noise (std 0.1)", "share", [0.3, 0.05])
    ]
    nested = [Chain(links=(Pruning(), chain(0.05, std))) for std in (0.1, 0.01)]
    assert [(field, values) for _, field, values in sweeps_of(nested)] == [("std", [0.01, 0.1])]


def test_two_sweeps_may_cross_in_one_defence():
    noisy = [TopK(share=0.05, noise=noise) for noise in (0.0, 0.01, 0.1, 1.0)]
    found = sweeps_of([*noisy, TopK(share=0.1), TopK(share=0.3)])
    assert found == [("top-k (share 0.05)", "noise", [0.0, 0.01, 0.1, 1.0]), ("top-k", "share", [0.3, 0.1, 0.05])]


def test_no_defence_and_off_are_the_reference_not_a_member():
    assert sweeps([Undefended(), GaussianNoise(std=0), GaussianNoise(std=1)]) == ()
    assert sweeps([chain(1.0, 0.0), chain(1.0, 0.1)]) == ()
    assert sweeps_of([TopK(share=1, noise=0.1), TopK(share=0.5, noise=0.1)]) == [
        ("top-k (noise 0.1)", "share", [1, 0.5])
    ]
    assert len(sweeps([chain(0.1, 0.0), chain(0.1, 0.1)])) == 1


@pytest.mark.parametrize("defences", [[], [GaussianNoise()], [Undefended()]])
def test_one_strength_is_no_sweep(defences):
    assert sweeps(defences) == ()


@given(st.sets(st.tuples(st.sampled_from((0.01, 0.1, 0.3)), st.sampled_from((0.001, 0.01, 0.1, 1.0)))))
def test_members_differ_in_one_number_and_none_that_has_a_neighbour_is_left_out(places):
    found = sweeps([TopK(share=share, noise=noise) for share, noise in sorted(places)])
    drawn = set()
    for sweep in found:
        members = [defence for _, defence in sweep.members]
        fixed = "noise" if sweep.field == "share" else "share"
        assert len({getattr(member, fixed) for member in members}) == 1
        assert len({getattr(member, sweep.field) for member in members}) == len(members) >= 2
        drawn |= {(member.share, member.noise) for member in members}
    neighbours = {a for a in places for b in places if a != b and (a[0] == b[0] or a[1] == b[1])}
    assert drawn == neighbours
