"""Audits of a network and data that a program has in memory."""

from __future__ import annotations

import copy
import dataclasses
import weakref
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from leaktight.api.progress import Watcher, show_progress
from leaktight.api.result import ModelAudit
from leaktight.core.defence import Defence
from leaktight.core.errors import InvalidValue, excerpt, unknown
from leaktight.core.in_memory import hold
from leaktight.core.record import Record
from leaktight.core.temporary import private_temporary
from leaktight.data.examples import Array, as_data
from leaktight.data.in_memory import InMemory as DataInMemory
from leaktight.data.in_memory import keep_units
from leaktight.data.source import Data
from leaktight.findings.first_answer import at_a_glance, first_answer
from leaktight.models.in_memory import InMemory as NetworkInMemory
from leaktight.models.mode import BatchNormMode
from leaktight.models.trial import Failure, attempt, outputs_of
from leaktight.plans.build import Faults, build_value, sweep
from leaktight.plans.plan import Grid, Plan
from leaktight.plans.presets import quick, standard
from leaktight.running.scheduler import Progress, run
from leaktight.running.time_budget import time_limit

Examples = Dataset[Any] | DataLoader[Any] | tuple[Array, Array] | Data
"""What data may come as: a torch `Dataset` or `DataLoader`, a pair (inputs, labels) of arrays, or a `Data`."""
Named = Defence | str | Mapping[str, Any]
"""A defence, its kind, or its settings as in a plan file."""
PRESETS = {"quick": quick, "standard": standard}


def audit_model(
    network: nn.Module,
    dataset: Examples,
    defences: Named | Iterable[Named] | None = None,
    budget: str | float | None = None,
    *,
    public: Examples | None = None,
    out: str | Path | None = None,
    preset: Literal["quick", "standard"] = "quick",
    seed: int = 0,
    workers: int = 1,
    device: str | None = None,
    head: str = "",
    batch_norm: BatchNormMode = "train",
    output: str = "",
    grid: Mapping[str, Any] | None = None,
    progress: bool | Progress = True,
    **scenario: Any,
) -> ModelAudit:
    """Measure what a network's federated training gives away, with and without defences.

    The network is audited as it is, with the weights that it has, and is not changed. It sees the examples just as
    `dataset` has them; whole-number images are divided by 255. Nothing is written but the audit's folder.

    With one worker everything runs in this process, so that a script needs no `if __name__ == "__main__":`, and a
    network may be defined in a notebook.

    Args:
        network: any module that ends in a linear layer.
        dataset: the private examples: a torch `Dataset` of pairs (input, label), a `DataLoader`, a pair (inputs,
            labels) of arrays or tensors, or a `Data`. Images have 1 or 3 channels; two dimensions are a table. Labels
            are whole numbers from 0.
        defences: what is compared with no defence: values such as `GaussianNoise(std=0.1)`, kinds such as
            `"gaussian_noise"`, or settings such as `{"kind": "gaussian_noise", "std": [0.01, 0.1]}`; None takes those
            of the preset.
        budget: how long it may take, such as `"30m"` or a number of seconds; `"none"` for no limit. None gives
            `quick` ten minutes, as nobody knows what your network costs, and sets no limit for `standard`.
        public: examples that are no secret, in any form that `dataset` may have: the network is tested on them, and
            attackers know them. None holds a fifth of `dataset` out.
        out: the audit's folder. If it holds this audit already, finished cells are kept, unless the network, the data
            or code changed. None takes a private folder that is removed with the result.
        preset: which attacks, settings and defences: `quick` or `standard`.
        seed: what all random draws derive from.
        workers: how many processes work; more than one needs a network that they can import, and in a script
            `if __name__ == "__main__":`.
        device: `cpu`, `cuda`, `mps`, or `auto`; None takes the fastest there is.
        head: the name of the last linear layer; empty to find it.
        batch_norm: the mode of batch norm, as in `leaktight explain factory`.
        output: which part of what the network returns is the class scores: as in `factory`.
        grid: batch sizes, stages and victims, as in `[grid]` of a plan, in place of the preset's.
        progress: whether to show progress, and the first answer as soon as it is there; or a function that is told of
            each step in place of both.
        **scenario: settings of the training run in place of the preset's, such as `rounds=20` or `participants=8`, as
            in `leaktight explain federated`.

    Raises:
        LeaktightError: network, data or settings cannot be used; one sentence says why.

    Example:
        >>> import torch
        >>> network = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
        >>> examples = torch.rand(40, 1, 4, 4), torch.arange(40) % 2
        >>> result = audit_model(network, examples, [], "none", rounds=1, grid={"victims": 1}, progress=False)
        >>> [(found.name, found.leak, found.verdict) for found in result.verdicts][:1]
        [('no defence', 'images', 'leaks')]
    """
    if not isinstance(network, nn.Module):
        raise InvalidValue(f"The `network` of audit_model must be a torch.nn.Module. Got {excerpt(network)} instead.")
    given = dataset if public is None else (dataset, public)
    data = keep_units(_count_outputs(as_data(given, "`dataset`", "The `dataset` of audit_model must be"), network))
    name, source = type(network).__name__, _name_of(dataset)
    plan = _plan(
        NetworkInMemory(name=name, head=head, batch_norm=batch_norm, output=output),
        DataInMemory(name=source),
        preset,
        defences,
        {**(grid or {}), "seeds": (seed,)},
        scenario,
    )
    given_time = budget if budget is None or isinstance(budget, str) else f"{budget}s"
    seconds = time_limit(given_time, unknown_cost=preset == "quick")
    with ExitStack() as stack:
        folder = stack.enter_context(private_temporary()) if out is None else Path(out).expanduser()
        with (
            hold({(NetworkInMemory.family, name): network, (DataInMemory.family, source): data}),
            show_progress(progress) as watcher,
        ):
            records = _run(plan, folder, workers, device, watcher, seconds)
        result = ModelAudit(name, folder, records)
        weakref.finalize(result, stack.pop_all().close)
    return result


def _run(
    plan: Plan, folder: Path, workers: int, device: str | None, watcher: Watcher, seconds: float | None
) -> list[Record]:
    """Run an audit; whoever watches is told what messages leak without a defence as soon as that is known."""
    say = watcher.say
    if say is None:
        return run(plan, folder, workers, device, watcher.step, seconds)
    answer = at_a_glance(plan, folder, device)
    if answer:
        say(answer)
    return run(
        plan,
        folder,
        workers,
        device,
        watcher.step,
        seconds,
        on_undefended=lambda records: say(first_answer(records, again=bool(answer))),
    )


def _plan(
    model: NetworkInMemory,
    data: DataInMemory,
    preset: str,
    defences: Named | Iterable[Named] | None,
    grid: Mapping[str, Any],
    scenario: Mapping[str, Any],
) -> Plan:
    if preset not in PRESETS:
        raise unknown("preset", str(preset), PRESETS)
    plan = PRESETS[preset](model=model, data=data).with_scenarios(**scenario)
    changed: dict[str, Any] = {"title": f"Audit of {model.name}", "grid": _grid(plan.grid, grid)}
    if defences is not None:
        changed["defences"] = _defences(defences)
    return Plan.model_validate({**dict(plan), **changed})


def _grid(planned: Grid, settings: Mapping[str, Any]) -> Grid:
    return Grid.model_validate({**dict(planned), **settings})


def _defences(given: Any) -> tuple[Defence, ...]:
    """Return defences from values, kinds or settings; every fault is found at once."""
    is_single = isinstance(given, Defence | str | Mapping) or not isinstance(given, Iterable)
    each: list[Any] = [given] if is_single else list(given)
    faults, found = Faults(), list[Defence]()
    for number, named in enumerate(each):
        if isinstance(named, Defence):
            found.append(named)
            continue
        try:
            variations = sweep(dict(named) if isinstance(named, Mapping) else named)
        except InvalidValue as error:
            faults.add(f"defences[{number}]", error)
            continue
        values = (build_value(Defence, variation, f"defences[{number}]", faults) for variation in variations)
        found += [value for value in values if value is not None]
    faults.check("The `defences` of audit_model")
    return tuple(found)


def _count_outputs(data: Data, network: nn.Module) -> Data:
    """Return data of as many classes as a network has outputs: examples of the last ones may be missing."""
    device = next((parameter.device for parameter in network.parameters()), None)
    try:
        outputs = outputs_of(attempt(lambda: copy.deepcopy(network).eval()), data.train.inputs[:2].to(device))
    except Failure:
        # What is wrong with it is said before the audit starts.
        return data
    if not isinstance(outputs, Tensor) or outputs.dim() != 2 or outputs.shape[1] <= data.classes:
        return data
    names = data.names if len(data.names) == outputs.shape[1] else ()
    return dataclasses.replace(data, classes=outputs.shape[1], names=names)


def _name_of(dataset: Examples) -> str:
    """Return what settings call the data: the name of their class."""
    if isinstance(dataset, DataLoader):
        return type(dataset.dataset).__name__
    return type(dataset).__name__ if isinstance(dataset, Dataset) else "arrays"
