"""Layer-wise Characterization of Latent Information Leakage: which layer's gradient reveals a private property.

Property inference on single layers of three networks, beside V-information and sensitivity, which are to predict it.
Two participants train by federated SGD; every second batch of each has the property. What leaks is measured on
gradients that are sent throughout training, sensitivity and mutual information on the model at its end.

Differs from the paper: Half of the messages have the property, where in the code that it builds on a fifth has. A run
that is looked at resumes from moments that are spread evenly over the training, from its first round on, where the
paper starts after some hundred. V-information is measured on the messages that are attacked, by forests that answer by
votes. Its correlation with another property's attack, which Fig. 7 asks about, is that of the first other subject.
Networks that the paper does not fully describe are completed as `FaceAlexNet`, `VGG11Net`, `FCNet` and `DeepDLNet` say.
The scales `smoke` and `small` have shorter training runs, fewer messages, smaller images and an attacker at the server.
Five tables are ours: `sealing` and `guard` ask what it is worth to hide or to guard the layers that leak most,
`mixed` and `matched` have batches of which only a part has the property, or whose labels are alike, `clients` has
several participants, federated averaging, both seats, and an active participant. Eq. 14 and 15, which relate
sensitivity to V-information, are ill-formed in print (a derivative by an argument that is missing from the fraction, an
infimum over terms that no longer hold what it is taken over) and left out. `scales` has the rest.

References:
    Mo et al., "Layer-wise Characterization of Latent Information Leakage in Federated Learning", 2021, sections 5, 6,
    9.1 and 9.2.
"""

from __future__ import annotations

from leaktight.papers.layer_leakage import (
    classifiers,
    clients,
    correlation,
    entries,
    guard,
    inversion,
    layers,
    matched,
    mixed,
    mutual_information,
    norms,
    properties,
    sealing,
    tasks,
)
from leaktight.papers.layer_leakage.scales import Study, describe_cut, missing_sets, study_of
from leaktight.papers.layer_leakage.sources import LFW
from leaktight.papers.layer_leakage.summary import SUMMARY
from leaktight.papers.paper import Paper

INTERVALS = (
    "Intervals are over training runs where there are two or more seeds; of one run alone, that of an AUC is over "
    "messages, that of V-information over attackers on the same messages, and that of sensitivity over examples. "
    "Intervals and p-values of R take layers for independent pairs, as the paper does, which they are not. Columns "
    "that end in `lead` compare the best layer at or next to the first fully connected one with the best other one, "
    "run by run; which two these are follows from their means. In AlexNet three of five layers are there."
)
FLAGS = (
    "The attributes of these faces are flags made by a machine, of which several or none may be set: classes are faces "
    "with exactly one of theirs, ages are four, and Black, Senior and black hair are those flags. Rare groups are "
    "over-represented in the archive that this was tried on."
)
SERVER = (
    "The attacker sits at the server and sees the gradients of both participants; the paper's is one of the two, who "
    "can compute the other's by subtraction."
)


def _notes(study: Study) -> list[str]:
    """Say what intervals are over, what the faces are, and where the attacker sits."""
    notes = [INTERVALS]
    if any(subject.data_set == LFW for subject in study.subjects):
        notes.append(FLAGS)
    sizes = {getattr(subject.data, "size", None) for subject in study.subjects if subject.data_set == LFW} - {None}
    if sizes:
        notes.append(
            f"Faces are cut to their middle square and brought to {sizes.pop()} pixels a side; the paper's are 62x47."
        )
    return [*notes, SERVER] if study.seat == "server" else notes


PAPER: Paper[Study] = Paper(
    name="layer-leakage",
    title="Layer-wise Characterization of Latent Information Leakage in Federated Learning (Mo et al. 2021)",
    setup=study_of,
    experiments=tuple(
        module.EXPERIMENT
        for module in (
            layers,
            sealing,
            guard,
            correlation,
            mixed,
            matched,
            clients,
            norms,
            classifiers,
            entries,
            properties,
            tasks,
            mutual_information,
            inversion,
        )
    ),
    cut=describe_cut,
    missing_sets=missing_sets,
    notes=_notes,
    summary=SUMMARY,
)
