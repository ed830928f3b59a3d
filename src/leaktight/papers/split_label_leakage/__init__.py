"""Label Leakage and Protection in Two-party Split Learning: a cut gradient's norm reveals the label; sumKL hides it.

Leak AUC over training and test AUC of Wide & Deep under sumKL, isotropic noise and max-norm. Every number is the mean
over seeds, with its t-interval where there are two or more; lost test AUC is paired on the same test rows. The number
of steps is the one that is best without protection on a fifth of the training rows, which were held out for that; the
table `steps` shows it. All defences train as long. Where every message is attacked, scores of the same row are added up
over the whole training run, which the paper's guarantee for one message does not speak of; the table `passes` follows
that over twenty passes.

Differs from the paper: It reports the best test AUC over training, which chooses on the test set; here the test AUC at
the end. Direction, clustering, an attack that knows the defence and max-norm are measured too; isotropic noise is
compared where it leaks as much and where it costs as much, by the strongest attack, not at one ratio. At layers before
the cut each step's leak AUC counts as 0.5 + |AUC - 0.5|, for its sign there is that of the feature party's own slopes;
`chance` is what the 95 % quantile would be if the message said nothing. The optimiser is not named in the paper; Adam
with 0.0001 at the scale `paper` is from the published code. At the scale `small` the parties hold different columns
(label party: counts; feature party: categories), and once more all of them, as in the paper; batches are of 1,024, and
where it says so all training rows at once, the largest without repeated rows; Adam has 0.001. `scales` has the rest.

References:
    Li et al., "Label Leakage and Protection in Two-party Split Learning", 2021, section 2.2 and Fig. 1, section 4 and
    Fig. 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.paper import Paper
from leaktight.papers.split_label_leakage import (
    attacks,
    distributions,
    equal_leak,
    layers,
    moments,
    passes,
    steps,
    trade_off,
    training,
)
from leaktight.papers.split_label_leakage.scales import PUBLISHED_BATCH, Study, describe_cut, missing_sets, studies
from leaktight.papers.split_label_leakage.summary import SUMMARY


def _notes(studies: Sequence[Study]) -> list[str]:
    """Say where the data are smaller than a batch of the paper."""
    notes = []
    for study in studies:
        rows = len(study.data.load().train) if study.batch_size == PUBLISHED_BATCH else study.batch_size
        if rows < study.batch_size:
            notes.append(
                f"The {study.name} data have {rows:,} training rows, the paper's about 41 million: each batch has all "
                f"of them, not {study.batch_size:,}."
            )
    return notes


PAPER: Paper[Sequence[Study]] = Paper(
    name="split-label-leakage",
    title="Label Leakage and Protection in Two-party Split Learning (Li et al. 2021)",
    setup=studies,
    experiments=tuple(
        module.EXPERIMENT
        for module in (equal_leak, trade_off, passes, training, moments, distributions, attacks, layers, steps)
    ),
    cut=describe_cut,
    missing_sets=missing_sets,
    notes=_notes,
    summary=SUMMARY,
)
