"""What the paper prints: four leak AUCs as numbers, its figures as the claims that the text makes about them."""

from __future__ import annotations

from leaktight.papers.reproduction import Tables, claims
from leaktight.papers.split_label_leakage.mechanisms import NONE
from leaktight.papers.split_label_leakage.settings import CRITEO_ALL

LEAK_AUC = (0.9832, 0.8862, 0.9098, 0.9229)
"""After 100, 200, 300 and 400 steps, cut in the middle, without protection (section 2.2); both parties hold all columns."""


def published() -> Tables:
    """Return the published numbers, and claims where there are only figures."""
    return {
        "moments": [
            {"data_set": CRITEO_ALL, "defence": NONE, "moment": look, "leak_auc": value}
            for look, value in enumerate(LEAK_AUC, start=1)
        ],
        "distributions": claims(
            ("The error is generally larger for positives than for negatives.", "2.2, Fig. 1a"),
            ("The slope is of the same order for both.", "2.2, Fig. 1b"),
            ("The norm of the gradient is generally larger for positives than for negatives.", "2.2, Fig. 1c"),
        ),
        "training": claims(
            (
                "Without protection the leak AUC at the cut is consistently around 0.9 through the majority of training.",
                "4, Fig. 2a",
            ),
            ("With sumKL it is much lower, and lower the higher the bound L.", "4, Fig. 2a"),
            (
                "At the first layer it is at the same high level without protection, and significantly lower with it.",
                "4, Fig. 2b",
            ),
        ),
        "attacks": claims(("The protection is against a general class of methods, of which the norm is one.", "3.1")),
        "layers": claims(
            (
                "Leak AUC of sumKL L=0.4 is about the same as that of isotropic 5, if not better, at each deep layer.",
                "4, Fig. 2c",
            )
        ),
        "trade_off": claims(
            ("More noise lowers the leak AUC and may hurt the model.", "3"),
            ("sumKL L=0.4 has a higher best test AUC than isotropic 5, and a smaller training loss.", "4, Fig. 2c"),
        ),
        "equal_leak": claims(("sumKL has a better trade-off than isotropic noise.", "4, Fig. 2c")),
        "steps": claims(("30 epochs; the best test AUC of a training counts.", "4")),
    }
