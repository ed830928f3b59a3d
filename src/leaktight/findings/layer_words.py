"""Layer words: what a layer study asks, which layers give most away, and whether cheap measures point at them."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.display import join_words
from leaktight.core.metric import Reading
from leaktight.findings.display import title_of
from leaktight.findings.kind import layer_measures
from leaktight.findings.layer_measure import REMAINING, SENSITIVITY, LayerMeasure
from leaktight.findings.layer_risk import (
    LEAST_LAYERS,
    MUTUAL_INFORMATION,
    LayerCorrelation,
    LayerRow,
    is_paired,
    question_in,
    riskiest,
    sealing_measure,
    sealings,
)
from leaktight.plans.layer_study import INFERENCE, LayerStudy

SIGNIFICANT = 0.05
CAVEAT = "All layers are computed from the same examples, so hiding one layer may hide nothing."
"""What a ranking of single layers does not show."""


def _measure_of(name: str) -> LayerMeasure | None:
    return next((measure for measure in layer_measures() if measure.reading == name), None)


def _informations() -> list[str]:
    return [measure.information for measure in layer_measures() if measure.information]


def _names() -> list[str]:
    """Return the readings to go by, the best first: of attacks that ask, of no attack, of attacks that rebuild."""
    asking, rebuilding = (
        [one.reading for one in layer_measures() if bool(one.question) is asks] for asks in (True, False)
    )
    return [*asking, *_informations(), *rebuilding]


def titles_without_attack() -> dict[str, str]:
    """Return the readings of layers that need no attack, in order, each with what the page and the terminal call it."""
    informations = {
        f"{one.information}_share": f"V-information of the {one.word} / log 2"
        for one in layer_measures()
        if one.information
    }
    return informations | {
        f"{SENSITIVITY}_share": "sensitivity (F), share of all layers",
        f"{MUTUAL_INFORMATION}_share": "mutual information / log\N{SUBSCRIPT TWO} N",
    }


def layer_sentences(rows: Sequence[LayerRow], question: str = "") -> list[str]:
    """Say in a sentence for each measured risk which layer gives most away by itself.

    Args:
        rows: what was measured of each layer.
        question: what an attack on the private property asks of the examples; by default whether they have it.

    Example:
        >>> layer_sentences([LayerRow("head", {"psnr": Reading(name="psnr", value=30.0)})])[0]
        'For the examples: By itself head has the highest PSNR (30.0 dB).'
    """
    found = [
        f"For {measure.noun}: {most_telling(rows, _phrase(measure, question), measure.ranks[:2])}"
        for measure in layer_measures()
        if any(name in row.readings for row in rows for name in measure.ranks[:2])
    ]
    return [*(found or [most_telling(rows)]), *(sealing_sentences(rows, question) or [CAVEAT])]


def sealing_sentences(rows: Sequence[LayerRow], question: str = "") -> list[str]:
    """Say what is still told once layers are sealed, and how many it takes; nothing if that was not measured.

    Args:
        rows: what was measured of each layer.
        question: what an attack on the private property asks of the examples; by default whether they have it.
    """
    measure = sealing_measure(rows)
    steps = [] if measure is None else sealings(rows, measure)
    if measure is None or not steps:
        return []
    first, total = steps[0], steps[-1].bytes
    content = f"what the other layers tell of {measure.noun}"
    sentences = [
        f"If {first.layer} alone is sealed ({_share(first.bytes, total)} of the parameters), {content} is "
        f"{_show(measure.reading_name(REMAINING), first.remaining)}."
    ]
    enough = next((step for step in steps[:-1] if not step.remaining.beats_chance()), None)
    if enough is None:
        sentences.append(f"As long as any layer is seen, it tells {measure.noun} measurably better than guessing.")
    else:
        sentences.append(
            f"Once {enough.count} of {len(steps)} layers {'is' if enough.count == 1 else 'are'} sealed "
            f"({_share(enough.bytes, total)} of the parameters), this attack is not measurably better than guessing; "
            "another one may be."
        )
    return sentences


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if part >= 0.01 * whole else "less than 1 %"


def _phrase(measure: LayerMeasure, question: str) -> str:
    """Return what an attack asks of the examples: of the private property, what it is, where somebody says it."""
    return question if question and measure.of_property else measure.question


def most_telling(rows: Sequence[LayerRow], question: str = "", names: Sequence[str] = ()) -> str:
    """Say in one sentence which layer gives most away by itself: by an attack that asks, else by what else there is.

    That is no advice on what to hide: see `CAVEAT`.

    Args:
        rows: what was measured of each layer.
        question: what the attack asks of the examples; by default what it asks where nobody says more.
        names: the readings to go by; the first that is there counts. By default all.

    Example:
        >>> most_telling([])
        'Nothing was measured of single layers.'
    """
    name = next((name for name in names or _names() if any(name in row.readings for row in rows)), None)
    if name is None:
        that = " that ranks them" if any(row.readings for row in rows) else ""
        return f"Nothing was measured of single layers{that}."
    first = riskiest(rows, name)
    top, best = first[0].readings[name], first[0].layer
    measure = _measure_of(name)
    asks = measure is not None and bool(measure.question)
    phrase = f"tells whether the examples behind a message {question or (measure.question if measure else '')}"
    if top.chance is not None and top.low is not None and not top.beats_chance():
        what = (
            f"{phrase} measurably better than guessing"
            if asks
            else f"has a {title_of(name)} above chance in all repetitions"
        )
        return f"No layer by itself {what}: the highest is {best} ({_show(name, top)})."
    if 1 < len(first) == sum(name in row.readings for row in rows):
        every = (
            f"Every layer by itself {phrase if asks else 'lies above chance'}, and none"
            if top.beats_chance()
            else "No layer"
        )
        few = f" {top.n} messages are too few to tell layers apart." if asks and top.n > 1 else ""
        highest = (
            f"in a paired test none tells measurably less than {best}, the highest ({_show(name, top)})"
            if is_paired(rows, name)
            else f"the intervals of all overlap with that of {best}, the highest ({_show(name, top)})"
        )
        return f"{every} stands out: {highest}.{few}"
    why = f"best {phrase} ({_show(name, top)})" if asks else f"has the highest {title_of(name)} ({_numbers(top)})"
    others = ""
    if len(first) > 1:
        rest = join_words([row.layer for row in first[1:]])
        others = (
            f"; in a paired test {rest} {'do' if len(first) > 2 else 'does'} not tell measurably less"
            if is_paired(rows, name)
            else f"; the interval{'s' * (len(first) > 2)} of {rest} overlap{'s' * (len(first) == 2)} with it"
        )
    return f"By itself {best} {why}{others}."


def _show(name: str, reading: Reading) -> str:
    return f"{title_of(name)} {_numbers(reading)}"


def _numbers(reading: Reading) -> str:
    """Show a value with its interval; small ones by significant digits."""
    measure = _measure_of(reading.name)
    unit, digits = ("", 2) if measure is None else (measure.unit, measure.digits)
    numbers = [f"{value:.{digits}f}" if abs(value) >= 0.1 else f"{value:.2g}" for value in _ends(reading)]
    interval = f", {numbers[1]} to {numbers[2]}" if len(numbers) > 1 else ""
    return f"{numbers[0]}{unit}{interval}"


def _ends(reading: Reading) -> list[float]:
    known = reading.low is not None and reading.high is not None
    return [value for value in (reading.value, reading.low, reading.high) if value is not None][: 3 if known else 1]


def setup_sentences(study: LayerStudy) -> list[str]:
    """Say what a study asks, on which messages, and what its attacker was given.

    Args:
        study: what is measured.

    Example:
        >>> from leaktight.data import Parity
        >>> from leaktight.models import MLP
        >>> setup_sentences(LayerStudy(data=Parity(), model=MLP()))[0][:83]
        'Asked is whether the examples behind a message have the property `6 or more`, and, '
    """
    data = study.data.load()
    questions = map(question_in, study.plans()[INFERENCE].scenarios.values())
    what = "all of its examples" if study.share == 1 else f"a share of {study.share:g} of its examples"
    alike = " Batches of both kinds have labels alike." if study.matched else ""
    sent = f"updates of {study.local_steps} local steps" if study.local_steps > 1 else "gradients"
    known = "their labels are known"
    if data.test.properties is not None:
        known += f", and which of them have the property ({int((data.test.properties == 1).sum())} do)"
    return [
        f"Asked is whether the examples behind a message {', and, apart, whether they '.join(questions)}.",
        f"In one of two rounds, drawn at random, {what} have what is asked for; in the other none has.{alike}",
        f"The attacker sits at the server and sees the {sent} of each of {study.participants} participants, and all "
        f"parameters handed out. It is given the {len(data.test)} test examples as public ones: {known}.",
        "The data is dealt out evenly, so that every participant has examples with the property and without.",
    ]


def together(found: Sequence[LayerCorrelation]) -> list[str]:
    """Say how far V-information and sensitivity point at the layers that tell an attack most, a sentence for each.

    Example:
        >>> together([LayerCorrelation("v_information", "property_auc", 0.95, 0.01, 5)])
        ['Over 5 layers, V-information goes along with property AUC (Pearson r = 0.95, p = 0.01).']
    """
    return [_together(one) for one in found if one.metric in (*_informations(), SENSITIVITY)]


def _together(one: LayerCorrelation) -> str:
    metric, attack = title_of(one.metric), title_of(one.attack)
    if one.n < LEAST_LAYERS:
        return f"There are too few layers ({one.n}) to say whether {metric} goes along with {attack}."
    if one.r is None or one.p is None:
        return f"Over {one.n} layers {metric} or {attack} does not vary, so neither says anything of the other."
    numbers = f"(Pearson r = {one.r:.2f}, p {'< 0.001' if one.p < 0.001 else f'= {one.p:.2g}'})"
    how = "goes along with" if one.r > 0 else "runs against"
    how = "does not measurably go along with" if one.p >= SIGNIFICANT else how
    return f"Over {one.n} layers, {metric} {how} {attack} {numbers}."
