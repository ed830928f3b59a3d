"""Rethinking Privacy Preserving Deep Learning: the secret polarization network, and a protocol to compare mechanisms.

Accuracies of DLNet under four mechanisms, attacks on one gradient of it, and federated training of larger networks.
Accuracies come from round robin over ten participants; attacks see one gradient of the initial network, as in Algorithm
5.

Every attack is run beside the suite `strongest`, on the initial network, as in the paper, and on the trained one whose
accuracy is multiplied with its leak. Tables of our own compare mechanisms at equal ratio and accuracy, show what
polarization leaves open, and a variant whose public head is guarded too.

Differs from the paper: "DP" is called Gaussian, which it is. Tracing and membership are decided on the reconstructions
of ten participants. Tracing asks whose the attacked images are, not all that are owned, of which almost none was sent:
over those, perfect reconstructions and noise differ by less than a hundredth. Measured too are labels read off the
public head, and an attacker who knows the mechanism, has public examples and takes the best of all attacks at each
strength. Federated accuracies are means of the last five rounds over three seeds; at the scale `small` whatever a check
rests on has three seeds. The learning rate of Table 3 is 0.01 for both networks (it lists 0.01 and 0.001). Numbers of
steps follow from a participant's mean share of the data. The scales `smoke` and `small` have fewer strengths, victims,
iterations and rounds, and a thinner AlexNet; `scales` says which.

References:
    Fan et al., "Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks", 2020, section
    4, appendices C to F.
"""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.paper import Paper
from leaktight.papers.polarization_network import (
    accuracy,
    bits,
    cap,
    cosines,
    equal,
    federated,
    hardened,
    laplace,
    left_open,
    ppc,
)
from leaktight.papers.polarization_network.figures import sections
from leaktight.papers.polarization_network.scales import Study, describe_cut, missing_sets, studies
from leaktight.papers.polarization_network.summary import SUMMARY

PAPER: Paper[Sequence[Study]] = Paper(
    name="polarization-network",
    title="Rethinking Privacy Preserving Deep Learning (Fan et al. 2020)",
    setup=studies,
    experiments=tuple(
        module.EXPERIMENT
        for module in (ppc, cap, equal, accuracy, federated, cosines, bits, laplace, left_open, hardened)
    ),
    cut=describe_cut,
    missing_sets=missing_sets,
    sections=sections,
    summary=SUMMARY,
)
