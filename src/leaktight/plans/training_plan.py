"""Training plans: the one training run that a plan file asks for, out of its scenarios and defences."""

from __future__ import annotations

from pathlib import Path

from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.learning.federated import Federated
from leaktight.learning.joint import JointTraining
from leaktight.plans.plan import on_device
from leaktight.plans.plan_file import parse_plan, read_document


def read_training(
    path: Path, defence: str | None = None, seed: int | None = None, device: str | None = None
) -> JointTraining:
    """Return the training run that a plan file asks for; attacks and grid have no part in it, and need not be there.

    Args:
        path: the same TOML file as for an audit, with one federated scenario.
        defence: which of the file's defences, by kind or as it is listed, or `none`; None takes the only one, or none
            if there is none.
        seed: in place of the plan's first.
        device: in place of the scenario's.
    """
    document = read_document(path)
    if not document.get("attacks") and not document.get("probes"):
        document = {**document, "attacks": ["analytic"]}
    plan = on_device(parse_plan(document, f"The file `{path}`"), device)
    scenarios = list(plan.scenarios.values())
    if len(scenarios) > 1:
        raise InvalidValue(f"A training run takes one scenario. `{path}` has {len(scenarios)}; leave the others out.")
    if not isinstance(scenarios[0], Federated):
        raise InvalidValue(
            f"`leaktight train` takes a federated scenario. Got `{scenarios[0].kind}` instead; two parties train by "
            "`leaktight split`."
        )
    chosen = _choose(plan.defences, defence)
    return JointTraining(scenario=scenarios[0], defence=chosen, seed=plan.grid.seeds[0] if seed is None else seed)


def _choose(defences: tuple[Defence, ...], wanted: str | None) -> Defence:
    if wanted == "none" or (wanted is None and not defences):
        return Undefended()
    named = [one for one in defences if wanted in (None, one.kind, str(one))]
    if len(named) == 1:
        return named[0]
    listed = ["none", *map(str, defences)]
    if wanted is not None and not named:
        raise InvalidValue(f"The plan has no defence `{wanted}`. {did_you_mean(wanted, listed)}")
    raise InvalidValue(
        "A training run takes one defence, and the plan has several. Choose by `--defence`: "
        f"{', '.join(f'`{one}`' for one in listed)}."
    )
