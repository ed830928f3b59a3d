"""What the paper prints: Table 1 as numbers, its figures as the claims that the text makes about them."""

from __future__ import annotations

from leaktight.papers.layer_leakage.networks import ALEXNET, FCNET, VGG11NET
from leaktight.papers.layer_leakage.tables import ALL
from leaktight.papers.reproduction import Cell, Row, Tables, claims

_SMALL = "<0.001"

# Table 1: for V-information, then for sensitivity, t, R and p-value.
TABLE_1: dict[str, dict[str, tuple[float, float, Cell]]] = {
    ALEXNET: {"V-information": (12.20, 0.959, _SMALL), "sensitivity": (3.60, 0.707, 0.003)},
    VGG11NET: {"V-information": (17.35, 0.952, _SMALL), "sensitivity": (5.25, 0.686, _SMALL)},
    FCNET: {"V-information": (18.41, 0.965, _SMALL), "sensitivity": (-0.73, -0.144, 0.472)},
    ALL: {"V-information": (26.21, 0.951, _SMALL), "sensitivity": (2.73, 0.304, 0.008)},
}


def published() -> Tables:
    """Return the published numbers, and claims where there are only figures."""
    return {
        "layers": claims(
            ("V-information and sensitivity both are highest at the first fully connected layer, in general.", "6.1, Fig. 2"),
            ("They are highest at layer 4 of AlexNet, 9 or 10 of VGG11Net and 1 of FCNet.", "6.1, Fig. 2"),
            ("Attacks on single layers have the same pattern.", "6.2, Fig. 3"),
            ("Test accuracies for gender on LFW are 0.99 (AlexNet), 0.99 (VGG11Net) and 0.94 (FCNet).", "6.1"),
        ),
        "correlation": [_row(network, measure) for network, measures in TABLE_1.items() for measure in measures],
        "norms": claims(
            ("All norms have similar patterns: the more sensitive part is after the last convolution.", "6.2, Fig. 4"),
            ("With AlexNet and VGG11Net R is moderate or strong, with p-values below 0.006.", "6.2, Fig. 4"),
        ),
        "classifiers": claims(
            ("An attack by a network has the same pattern over layers.", "6.2, Fig. 5"),
            ("The random forest outperforms the network.", "6.2, Fig. 5"),
        ),
        "entries": claims(
            ("With 48 random entries of each layer the pattern is that of complete gradients.", "6.2, Fig. 6"),
            ("Layers around the first fully connected one still have the higher AUC.", "6.2, Fig. 6"),
        ),
        "properties": claims(
            ("For age, gender and hair layer 9 of VGG11Net, the first fully connected one, leaks most.", "6.3, Fig. 7"),
            ("For gender R is 0.595 for V-information, 0.357 less, and 0.822 for sensitivity, 0.136 more.", "6.3, Fig. 7"),
            ("The least sensitive layer alone still has an AUC of around 0.6.", "7"),
        ),
        "tasks": claims(
            ("Whatever the task, layer 4 of AlexNet and layer 9 or 10 of VGG11Net are the most sensitive.", "6.3, Fig. 8"),
            ("Accuracies of AlexNet: gender 0.99, glasses 0.80, race 0.76, hair 0.52, age 0.43.", "6.3"),
            ("Accuracies of VGG11Net: gender 0.99, glasses 0.89, race 0.75, hair 0.49, age 0.33.", "6.3"),
        ),
        "mutual_information": claims(("The information about the input decreases towards later layers.", "9.1, Fig. 9")),
        "inversion": claims(
            ("The gradient of the first layer tends to be the most important for a reconstruction.", "9.2, Fig. 10")
        ),
    }


def _row(network: str, measure: str) -> Row:
    t, r, p = TABLE_1[network][measure]
    return {"network": network, "measure": measure, "r": r, "t": t, "p": p}
