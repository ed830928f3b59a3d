from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Literal

import pytest

from leaktight.attacks import Direction, PropertyInference
from leaktight.core.defence import Chain, Defence
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import Attempt
from leaktight.core.scenario import Content, Control
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import GaussianNoise, TopK
from leaktight.plans.control import control_cells
from leaktight.plans.validation import validate_plan
from leaktight.running.fingerprint import Fingerprints


@pytest.fixture(scope="module")
def scenario(toys: ModuleType) -> type[Any]:
    """Return a scenario as a plugin may write it: what it does not know of itself it leaves out."""

    class Own(toys.ToyScenario):
        kind: Literal["own"] = "own"
        weather: str = "mild"

        def content(self, seed: int) -> Content:
            return Content(digests={"the weather": self.weather})

        def seats(self, seeds: Sequence[int], batch_sizes: Sequence[int]) -> frozenset[str]:
            return frozenset({"server", "client-0"})

        def check(self, defences: Sequence[Defence], stages: Sequence[str], victims: int | None, seed: int) -> None:
            if victims is None:
                raise InvalidValue("There are too many victims.")

        def control(self) -> Control:
            return Control(self.model_copy(update={"weather": "none"}), "toy_attack", batch_size=3)

    return Own


def test_a_scenario_of_a_plugin_answers_for_itself_without_being_registered(scenario: type[Any]) -> None:
    one, other = scenario(), scenario(weather="storm")
    assert Fingerprints().of(other, 0).changes(Fingerprints().of(one, 0)) == ["the weather"]
    (cell,) = control_cells(one, (0,), 4, ())
    assert (cell.scenario.weather, cell.label, cell.batch_size) == ("none", "toy_attack", 3)


def test_seats_and_checks_of_a_plugin_count(toy_plan: Callable[..., Any], scenario: type[Any]) -> None:
    plan = toy_plan().model_copy(update={"scenarios": {"1": scenario()}})
    validate_plan(plan)
    [(label, probe)] = plan.probes.items()
    for seat in ("wire", "client-0"):
        moved = probe.model_copy(update={"threat": ThreatModel(seat=seat)})
        validate_plan(plan.model_copy(update={"probes": {label: moved}}))
    away = probe.model_copy(update={"threat": ThreatModel(seat="client-1")})
    with pytest.raises(InvalidValue, match=rf"There is no seat `client-1` for {label} in this scenario."):
        validate_plan(plan.model_copy(update={"probes": {label: away}}))
    with pytest.raises(InvalidValue, match="There are too many victims"):
        validate_plan(plan.model_copy(update={"grid": plan.grid.model_copy(update={"victims": "all"})}))


def test_a_chain_whose_links_undo_each_other_is_warned_about_once(
    toy_plan: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    chains = (
        Chain(links=(TopK(share=0.1), GaussianNoise(std=0.1))),
        Chain(links=(TopK(share=0.1), GaussianNoise(std=0.2))),
    )
    validate_plan(toy_plan(defences=chains))
    [warning] = caplog.records
    assert warning.message.startswith("gaussian_noise after top_k puts noise on the entries")


def test_what_the_attacker_knows_must_not_contradict_its_attacks(
    toy_plan: Callable[..., Any], toys: ModuleType
) -> None:
    plan = toy_plan()
    [probe] = plan.probes.values()
    needy = {
        name: Attempt(attack=attack, threat=ThreatModel(knows=frozenset(knows)), metrics=probe.metrics)
        for name, attack, knows in (
            ("granted", Direction(), {Knows.HINTS}),
            ("direction", Direction(), ()),
            ("property", PropertyInference(), {Knows.HINTS}),
        )
    }
    with pytest.raises(InvalidValue) as caught:
        validate_plan(plan.model_copy(update={"probes": needy}))
    assert str(caught.value) == (
        "What the attacker `knows` contradicts the attacks: direction needs hints and property needs auxiliary. Add "
        "that to `knows` in `[threat]`, or leave these attacks out."
    )
    validate_plan(plan.model_copy(update={"probes": {"granted": needy["granted"]}}))
