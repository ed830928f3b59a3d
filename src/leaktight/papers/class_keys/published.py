"""What the paper prints: Table 1 as numbers, its figures as the claims that the text makes about them."""

from __future__ import annotations

from leaktight.papers.class_keys.settings import CIFAR10, CIFAR100
from leaktight.papers.class_keys.tables import ENTROPY, REGRESSION
from leaktight.papers.reproduction import Tables, claims

ACCURACY = {(REGRESSION, CIFAR10): 0.948, (ENTROPY, CIFAR10): 0.940, (REGRESSION, CIFAR100): 0.736, (ENTROPY, CIFAR100): 0.742}
"""Table 1."""


def published() -> Tables:
    """Return the published numbers, and claims where there are only figures."""
    return {
        "key_overlap": claims(
            ("As keys get longer, the largest overlap of any two among 100 diminishes sharply.", "4.3, Fig. 2")
        ),
        "learning": claims(
            ("A fixed layer delays convergence, with similar accuracy in the end.", "5.2, Fig. 3"),
            ("It is better only at 128 dimensions.", "5.2, Fig. 3"),
            ("On faces every participant reaches at least 95 %.", "5.2, Fig. 3"),
        ),
        "experiments": claims(
            ("With the exact key the attacker reconstructs images of the class with high visual similarity.", "5.3 I, Fig. 4"),
            ("With random keys a classifier of MNIST recognises 0 % of the generated examples.", "5.3 III, Fig. 6"),
            ("Short keys let the attacker learn some class of faces; long ones do not.", "5.3 III, Fig. 7"),
        ),
        "distances": claims(
            ("On MNIST there is a sharp threshold: from a distance of 0.5 samples are not recognised.", "5.3 II, Fig. 5"),
            ("On faces nothing can be made out from 1.1.", "5.3 II, Fig. 5"),
        ),
        "several_attackers": claims(("Five participants that all attack fail at 16,384 dimensions.", "5.3 III, Fig. 6")),
        "other_defences": claims(("Noise trades accuracy for privacy; keys need no such trade.", "2")),
        "shared_keys": claims(
            ("The score with each of two keys of a class approaches 0.7.", "5.4, Fig. 8 left"),
            ("That with any other key vanishes.", "5.4, Fig. 8 right"),
        ),
        "shared_classes": claims(("Training with shared classes has no observable issues.", "5.4")),
        "regression": [
            {"data_set": data_set, "objective": objective, "accuracy": value}
            for (objective, data_set), value in ACCURACY.items()
        ],
    }
