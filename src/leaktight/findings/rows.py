"""Rows: what was measured of one defence against one attack in one setting, over all seeds."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

from leaktight.attacks.matching import GradientMatching
from leaktight.core.attack import Attack, Principle
from leaktight.core.budget import Budget, budgets_of
from leaktight.core.defence import Defence, is_undefended
from leaktight.core.display import show_count
from leaktight.core.metric import Reading
from leaktight.core.probe import LUCKIEST, OBJECTIVE, Attempt, Probe, attack_of
from leaktight.core.record import Record, Status
from leaktight.core.run import largest
from leaktight.core.scenario import Scenario
from leaktight.findings.adaptation import member_of, models_defence
from leaktight.findings.column import NOTHING
from leaktight.findings.display import label_of, name_of, rank, setting
from leaktight.findings.kind import leak_kinds
from leaktight.findings.utility import Price, is_utility, no_better, price_of, utility_of
from leaktight.metrics.perturbation import BIAS_RATIO, BODY_RATIO, RATIO
from leaktight.metrics.search_gap import OBJECTIVE_OF_GUESS, OBJECTIVE_OF_TRUTH, SEARCH_FAILED
from leaktight.plans.control import at_the_message
from leaktight.statistics.pooling import low, pool

RATIOS = (BIAS_RATIO, BODY_RATIO, RATIO)
"""What was sent beside what a defence added to it: over the biases, which is the paper's, the body, and all tensors."""
UNTRAINED = "the model was not trained (0 rounds)"

Against = Literal["raw", "used"]


@dataclasses.dataclass(frozen=True)
class Row:
    """One defence against one attack in one setting, over all seeds.

    Args:
        scenario: number of the scenario in the audit, from 1.
        defence: the defence at its strength.
        attack: how the report names the probe.
        simple: whether the attack is one that a strong one should beat.
        batch_size: examples behind one local step of one participant.
        stage: when in training it was measured.
        seeds: the seeds that gave a result.
        counts: how many cells were done, refused, failed.
        readings: each reading, pooled over seeds.
        by_seed: the same readings of each seed by itself; empty for one attack of several.
        members: of several attacks that were tried together, what each of them reached, by its name (`Reading.by`).
        alone: the same members, each as a row of its own; empty for an attack by itself.
        suite: how the report names the attacks that this one was tried together with; empty for an attack by itself.
        notes: what parties noted, the largest over seeds.
        loss: utility lost against no defence at the same seeds, in [-1, 1].
        cells: the keys of the cells behind this row, done ones first.
        among: how many scenarios the audit has.
        adaptive: whether the attack models the defence, and was told of it.
        active: whether the attacker sat in the training.
        messages: how many messages were measured.
        kind: the kind of the attack; empty for a measurement that needs none.
        principle: what the attack rests on; None for a measurement that needs none, and for an attack that is not known
            any more.
        seat: where the attacker sits.
        unpriced: why no defence of this scenario has a price; empty if prices can be given.
        layer: the one layer that the attack inverts; empty if it is given all.
        measured_in: the scenario itself; None if it is not known.
        class_names: what the classes of the data are called, in their order; empty if nobody says.
        aim: which of several things the attack is after, in words; empty if it has no such choice.
    """

    scenario: int
    defence: Defence
    attack: str
    simple: bool
    batch_size: int
    stage: str
    seeds: tuple[int, ...]
    counts: Mapping[Status, int]
    readings: tuple[Reading, ...] = ()
    by_seed: tuple[Reading, ...] = ()
    members: tuple[Reading, ...] = ()
    alone: tuple[Row, ...] = ()
    suite: str = ""
    notes: Mapping[str, float] = dataclasses.field(default_factory=dict)
    loss: Price | None = None
    cells: tuple[str, ...] = ()
    among: int = 1
    adaptive: bool = False
    active: bool = False
    messages: int = 0
    kind: str = ""
    principle: Principle | None = None
    seat: str = ""
    unpriced: str = ""
    layer: str = ""
    measured_in: Scenario | None = None
    class_names: tuple[str, ...] = ()
    aim: str = ""

    @property
    def behind(self) -> int:
        """How many examples are behind one message: a batch, or more after several local steps or in a secure sum."""
        names = {name for kind in leak_kinds() for name in kind.by_example}
        scored = max((r.n for r in self.readings if r.name in names and r.against == "raw"), default=0)
        return max(self.batch_size, round(scored / self.messages) if self.messages else 0)

    @property
    def moment(self) -> str:
        """When and from how many examples the messages were made."""
        return setting(self.batch_size, self.stage, self.behind)

    @property
    def setting(self) -> str:
        """When and from how many examples the messages were made; and where, if there are several scenarios."""
        return f"{f'scenario {self.scenario}, ' if self.among > 1 else ''}{self.moment}"

    @property
    def title(self) -> str:
        """What tables call the attack: of several that were tried together, with their name."""
        return f"{self.attack} (of {self.suite})" if self.suite else self.attack

    @property
    def attacks(self) -> tuple[Row, ...]:
        """Each attack that was tried, as a row of its own: the members of an ensemble, or this row."""
        return self.alone or (self,)

    def reading(self, name: str, against: Against | None = None) -> Reading | None:
        """Return the pooled reading of this name."""
        return next(
            (r for r in self.readings if r.name == name and against in (None, r.against) and r.layer is None), None
        )

    @property
    def utility(self) -> Reading | None:
        """How good the trained model is on test data: its accuracy, or what the training measured in its place."""
        return utility_of(self.readings)

    @property
    def useless(self) -> bool:
        """Whether the trained model may be no better than one that learned nothing.

        A model that always names the commonest class has learned nothing.
        """
        utility = self.utility
        return utility is not None and utility.chance is not None and low(utility) <= utility.chance

    @property
    def failures(self) -> Reading | None:
        """The share of its searches that failed; None where nothing was searched for or nobody could tell."""
        return self.reading(SEARCH_FAILED)

    @property
    def status(self) -> str:
        """Why it has no numbers, in words."""
        return " and ".join(why.value for why in (Status.REFUSED, Status.FAILED) if self.counts.get(why)) or NOTHING

    @property
    def informative(self) -> bool:
        """Whether a row on which nothing was found says anything about the messages: not if every search failed."""
        return self.failures is None or round(self.failures.value * self.failures.n) < self.failures.n

    @property
    def searches(self) -> str:
        """How many of its searches failed, and why, in words; nothing where that is not known."""
        if self.failures is None:
            return ""
        found, best = self.reading(OBJECTIVE_OF_GUESS), self.reading(OBJECTIVE_OF_TRUTH)
        why = ""
        if self.failures.value > 0:
            pairs = zip(found.each, best.each, strict=True) if found is not None and best is not None else ()
            better = any(truth < guess for guess, truth in pairs)
            why = " (the truth fits better)" if better else " (diverged, out of range or worse than blind)"
        return f"{show_count(self.failures)}{why}"

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """What training and attacked messages spent of differential privacy; none if nothing accounts for it."""
        return budgets_of(self.notes)


def rows_of(records: Sequence[Record]) -> tuple[Row, ...]:
    """Return one row for each defence, attack and setting of the measuring cells."""
    scenarios: dict[str, int] = {}
    untrained: set[int] = set()
    groups: dict[tuple[object, ...], list[Record]] = {}
    for record in records:
        cell = record.cell
        if cell.purpose == "measure":
            number = scenarios.setdefault(cell.scenario.key, len(scenarios) + 1)
            untrained |= {number} if cell.scenario.untrained else set()
            groups.setdefault((number, cell.defence.key, label_of(cell), cell.batch_size, cell.stage), []).append(
                record
            )
    losses = _losses(records)
    noise = {
        (_place(record), left.by): left.value
        for record in records
        if record.cell.purpose == "null"
        for left in record.readings
        if left.name == OBJECTIVE
    }
    rows = [
        _row(scenarios[group[0].cell.scenario.key], len(scenarios), [_beside_noise(r, noise) for r in group], losses)
        for group in groups.values()
    ]
    return tuple(sorted(_with_prices(rows, untrained), key=_order))


def _place(record: Record) -> tuple[object, ...]:
    cell = record.cell
    return cell.scenario.key, cell.defence.key, cell.batch_size, attack_of(at_the_message(cell.probe))


def _beside_noise(record: Record, noise: Mapping[tuple[tuple[object, ...], str], float]) -> Record:
    """Return a record whose ungraded objectives have what the attack is left with on noise as their chance level."""
    if not noise or record.reading(OBJECTIVE) is None:
        return record
    place = _place(record)
    readings = (
        r.model_copy(update={"chance": noise[place, r.by]}) if r.name == OBJECTIVE and (place, r.by) in noise else r
        for r in record.readings
    )
    return record.model_copy(update={"readings": tuple(readings)})


def _with_prices(rows: Sequence[Row], untrained: Collection[int]) -> list[Row]:
    """Take prices away in scenarios where none can be given, and say why; where nothing was trained, utilities too."""
    reasons = {row.scenario: _why_unpriced([r for r in rows if r.scenario == row.scenario], untrained) for row in rows}

    def price(row: Row) -> Row:
        return dataclasses.replace(
            row,
            readings=tuple(r for r in row.readings if row.scenario not in untrained or not is_utility(r)),
            loss=None if reasons[row.scenario] else row.loss,
            unpriced=reasons[row.scenario],
            alone=tuple(map(price, row.alone)),
        )

    return [price(row) for row in rows]


def _why_unpriced(rows: Sequence[Row], untrained: Collection[int]) -> str:
    """Return why the defences of one scenario have no price; nothing if they have."""
    if rows[0].scenario in untrained:
        return UNTRAINED
    # All undefended rows stand on the same training runs, but those of an attacker who sat inside and may have spoilt
    # one; the one over the most seeds says it best.
    bare = max(
        (row for row in rows if is_undefended(row.defence)),
        key=lambda row: (not row.active, len(row.seeds)),
        default=None,
    )
    if bare is None or not bare.useless:
        return ""
    return f"even without defence the model {no_better(bare.utility)}"


def _order(row: Row) -> tuple[object, ...]:
    kind = "" if is_undefended(row.defence) else row.defence.title.lower()
    return (
        row.scenario,
        kind,
        rank(row.defence),
        name_of(row.defence),
        row.stage != "initial",
        row.stage,
        row.batch_size,
        row.attack,
        row.defence.key,
    )


def _row(scenario: int, among: int, group: Sequence[Record], losses: Mapping[Trained, tuple[Reading, Reading]]) -> Row:
    cell = group[0].cell
    attack = attack_of(cell.probe)
    done = [record for record in group if record.status is Status.DONE]
    alike: dict[tuple[object, ...], list[Reading]] = {}
    for record in done:
        # A record may hold one metric twice, with other settings: the first of each is pooled with the first of the
        # others.
        seen: Counter[tuple[object, ...]] = Counter()
        for reading in record.readings:
            place = (reading.name, reading.against, reading.layer, reading.by)
            alike.setdefault((*place, seen[place]), []).append(reading)
            seen[place] += 1
    pooled = tuple(map(_pool, alike.values()))
    runs = {training: losses[training] for record in done if (training := _training(record)) in losses}
    row = Row(
        scenario=scenario,
        defence=cell.defence,
        attack=label_of(cell),
        simple=attack is not None and attack.simple,
        batch_size=cell.batch_size,
        stage=cell.stage,
        seeds=tuple(sorted({record.cell.seed for record in done})),
        counts=Counter(record.status for record in group),
        readings=tuple(reading for reading in pooled if not reading.by),
        by_seed=tuple(reading for record in done for reading in record.readings if not reading.by),
        members=tuple(reading for reading in pooled if reading.by),
        notes=largest(record.notes for record in done),
        loss=price_of(list(runs.values())) if runs else None,
        cells=tuple(
            record.cell.key for record in sorted(group, key=lambda r: (r.status is not Status.DONE, r.cell.seed))
        ),
        among=among,
        adaptive=models_defence(attack, cell.probe, cell.defence),
        active=attack is not None and attack.active,
        messages=sum(record.cell.victims for record in done),
        kind="" if attack is None else attack.kind,
        principle=None if attack is None else attack.principle,
        seat=cell.probe.threat.seat if isinstance(cell.probe, Attempt) else "",
        layer=_inverted_layer(attack),
        measured_in=cell.scenario,
        class_names=next((record.class_names for record in done if record.class_names), ()),
        aim="" if attack is None else attack.aim,
    )
    if attack is None:
        return row
    names = dict.fromkeys(reading.by for reading in row.members if reading.by != LUCKIEST)
    return dataclasses.replace(
        row, alone=tuple(_member(row, name, member_of(attack, name), cell.probe) for name in names)
    )


def _member(row: Row, name: str, attack: Attack | None, probe: Probe) -> Row:
    """Return what one attack of several reached, as a row of its own.

    The row is of the same training, so its model is as good.
    """
    own = tuple(reading.model_copy(update={"by": ""}) for reading in row.members if reading.by == name)
    readings = (*own, *(reading for reading in row.readings if is_utility(reading)))
    return dataclasses.replace(
        row,
        attack=name,
        suite=row.attack,
        simple=attack is not None and attack.simple,
        adaptive=models_defence(attack, probe, row.defence),
        active=attack is not None and attack.active,
        kind=row.kind if attack is None else attack.kind,
        principle=None if attack is None else attack.principle,
        layer=_inverted_layer(attack),
        readings=readings,
        by_seed=(),
        members=(),
    )


def _inverted_layer(attack: Attack | None) -> str:
    return attack.layers[0] if isinstance(attack, GradientMatching) and len(attack.layers) == 1 else ""


def _pool(readings: Sequence[Reading]) -> Reading:
    """Pool over seeds; a ratio on the logarithmic scale on which it was measured.

    What became of each test row has done its part.
    """
    readings = [reading.without_outcomes() for reading in readings]
    if len(readings) == 1 or readings[0].name not in RATIOS or min(map(low, readings)) <= 0:
        return pool(readings)
    return over(pool([over(one, math.log) for one in readings]), math.exp)


def over(reading: Reading, scale: Callable[[float], float]) -> Reading:
    """Return a reading on another, growing scale; single values are left out.

    Example:
        >>> over(Reading(name="gradient_ratio", value=4.0, low=1.0), math.sqrt).value
        2.0
    """
    ends = {"low": reading.low, "high": reading.high}
    moved = {name: None if end is None else scale(end) for name, end in ends.items()}
    return reading.model_copy(update={"value": scale(reading.value), **moved, "each": ()})


Trained = tuple[str, str, int, str]
"""Which training a record stands on: scenario, defence, seed, and the attacker who sat in it, if any."""


def _training(record: Record) -> Trained:
    cell = record.cell
    entrant = cell.probe.entrant
    return cell.scenario.key, cell.defence.key, cell.seed, entrant.key if entrant else ""


def _losses(records: Sequence[Record]) -> dict[Trained, tuple[Reading, Reading]]:
    """Return the utility of the matching undefended training, and each training's own.

    The undefended training has the same scenario, the same seed and the same attacker inside.
    """
    # A null cell of an attacker who sits in the training stands on one among noise.
    real = [r for r in records if r.cell.purpose != "null" or r.cell.probe.entrant is None]
    trained = {_training(r): reading for r in reversed(real) if (reading := utility_of(r.readings))}
    base = {
        (place[0], *place[2:]): place
        for r in real
        if is_undefended(r.cell.defence) and (place := _training(r)) in trained
    }
    return {
        place: (trained[bare], utility)
        for place, utility in trained.items()
        if (bare := base.get((place[0], *place[2:]))) is not None and bare != place
    }
