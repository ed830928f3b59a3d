"""Verdict: what the rows of an audit say about each defence, in sentences.

A defence is judged by the strongest attack against it, in the settings in which no defence was measured too. Nothing is said
that no row shows: that no attack tried got through is not that none can.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from leaktight.audit import verdict_captures, verdict_labels, verdict_property
from leaktight.audit.label_leak import tells_labels, turned
from leaktight.audit.pool import high, leakage, leaks_more
from leaktight.audit.property_leak import tells_property
from leaktight.audit.rows import LABELS, PSNR, STATEMENT, Row, Tone
from leaktight.audit.utility import utility_name
from leaktight.audit.words import capital, counted, listed, name_of, not_broken, percent, points, title_of, undefended
from leaktight.core.defence import Defence
from leaktight.core.metric import Reading


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What was found about one defence, and either about its examples and labels or about a private property of them.

    Args:
        scenario: number of the scenario, from 1.
        defence: the defence at its strength.
        worst: the row of the strongest attack against it.
        base: the strongest attack without defence in the same settings; None if there is none.
        tone: `unbroken` if no attack tried recognised anything, though one did without the defence; `reduces` if measurably less leaks;
            `leaks` if not; `unknown` if there is nothing to compare with, or if nothing was recognised because every search failed.
        sentence: the finding in words.
        attacks: the attacks that were tried and can be compared; there are stronger ones.
    """

    scenario: int
    defence: Defence
    worst: Row
    base: Row | None
    tone: Tone
    sentence: str
    attacks: tuple[str, ...] = ()


def judge(rows: Sequence[Row]) -> tuple[Judgement, ...]:
    """Return one judgement for each scenario and defence that has a reading about leakage, in the order of the rows.

    A private property is judged apart: how well it is told cannot be weighed against how well images are recognised.
    """
    groups: dict[tuple[int, str, bool], list[Row]] = {}
    for row in rows:
        if row.leak is not None:
            groups.setdefault((row.scenario, row.defence.key, tells_property(row.leak)), []).append(row)
    open_rows = [row for row in rows if row.leak is not None and undefended(row.defence)]
    return tuple(_judgement(group, open_rows) for group in groups.values())


def strongest(rows: Iterable[Row]) -> Row | None:
    """Return the row that leaks most, or None of none."""
    return max(rows, key=lambda row: row.severity, default=None)


def _judgement(group: Sequence[Row], open_rows: Sequence[Row]) -> Judgement:
    group = _alike(group)
    settings = {_place(row) for row in group}
    comparable = [row for row in open_rows if _place(row) in settings]
    base = strongest(comparable)
    measured_open = {_place(row) for row in comparable}
    shared = [row for row in group if not comparable or _place(row) in measured_open]
    worst = _worst(shared, base)
    tone, idle = _tone(worst, base), ""
    if tone == "unbroken":
        telling = [row for row in shared if row.informative]
        tone = "unbroken" if telling else "unknown"
        idle = _idle(shared, telling)
        shared = telling or shared
        worst = _worst(shared, base)
    attacks = tuple(dict.fromkeys(row.attack for row in shared))
    said = _open(worst) if undefended(worst.defence) else f"{_defended(worst, base, tone, attacks)}{idle}{_informed(group)}"
    return Judgement(worst.scenario, worst.defence, worst, base, tone, said, attacks)


def _worst(rows: Sequence[Row], base: Row | None) -> Row:
    """Return the row that leaks most; of settings in which nothing got through, the one that leaks most without defence says most."""
    return max(rows, key=lambda row: (row.severity, base is not None and _place(row) == _place(base)))


def _idle(rows: Sequence[Row], telling: Sequence[Row]) -> str:
    """Name the attacks that do not count because all their searches failed, where others count."""
    names = {row.attack for row in telling}
    failed = list(dict.fromkeys(row.attack for row in rows if row.attack not in names))
    return f" Every search of {listed(failed)} failed, which says nothing about the defence." if failed and names else ""


def _place(row: Row) -> tuple[object, ...]:
    """Return what two rows must share to be compared: scenario, setting, and what they are judged by."""
    return row.scenario, row.batch_size, row.stage, row.leak.name if row.leak else ""


def _alike(group: Sequence[Row]) -> list[Row]:
    """Return the rows that can be ranked against each other: by recognised images if any are, else PSNR, else the first's."""
    names = [row.leak.name for row in group if row.leak is not None]
    chosen = next((name for name in (STATEMENT, PSNR) if name in names), names[0])
    return [row for row in group if row.leak is not None and row.leak.name == chosen]


def _leaky(row: Row) -> bool:
    """Return whether anything leaked: an image recognised, a reading beyond its chance level, labels told at least in the worst steps.

    A generator that shows another class of the attacked than the one it was after has leaked that one.
    """
    reading = row.leak
    if reading is None:
        return False
    if row.any_class is not None and row.any_class.beats_chance():
        return True
    if tells_property(reading):
        return reading.beats_chance() or turned(reading)
    if tells_labels(reading):
        return reading.beats_chance() or (row.tail is not None and row.tail.beats_chance()) or turned(reading)
    return reading.value > (reading.chance or 0) if reading.name == STATEMENT else reading.beats_chance()


def _tone(worst: Row, base: Row | None) -> Tone:
    if undefended(worst.defence):
        return "leaks" if _leaky(worst) else "unknown"
    if base is None or base.leak is None or worst.leak is None or not _leaky(base):
        return "leaks" if _leaky(worst) else "unknown"
    if not _leaky(worst):
        return "reduces" if _transformed(worst) else "unbroken"
    return "reduces" if _less(worst, base) and not turned(worst.leak) else "leaks"


def _less(worst: Row, base: Row) -> bool:
    """Return whether measurably less leaks than without defence: by what is judged, or by it together with the PSNR.

    Samples of another class than the one asked for are no less of a leak.
    """
    one, other = worst.leak, base.leak
    if one is None or other is None:
        return False
    if worst.any_class is not None and base.any_class is not None and not leaks_more(base.any_class, worst.any_class):
        return False
    likeness, before = worst.reading(PSNR, "raw"), base.reading(PSNR, "raw")
    blurred = likeness is not None and before is not None and leaks_more(before, likeness)
    return leaks_more(other, one) or (blurred and leakage(one) < leakage(other))


def _found(row: Row) -> str:
    """Say what the strongest attack got: a share of images, or a number beside its chance level."""
    leak = row.leak
    if leak is None:
        return "nothing"
    if leak.name == STATEMENT:
        return f"{counted(leak)} {'image' if leak.n == 1 else 'images'}"
    chance = "" if leak.chance is None else f", chance {leak.chance:.3g}"
    return f"{title_of(leak.name)} {leak.value:.3g}{chance}"


def _by(row: Row) -> str:
    detail = [row.attack, row.moment]
    if row.median is not None and row.recognised is not None:
        psnr = row.reading(PSNR, "raw")
        detail.insert(0, f"{'median' if psnr and psnr.each else 'mean'} PSNR {row.median:.0f} dB")
    return "; ".join(detail)


def _open(row: Row) -> str:
    if tells_labels(row.leak):
        return verdict_labels.of_nothing(row)
    if tells_property(row.leak):
        return verdict_property.of_nothing(row)
    if row.recognised is None:
        return f"Without defence, the strongest attack tried reached {_found(row)}{_elsewhere(row)} ({_by(row)})."
    if row.recognised.value == 0:
        return (
            f"Without defence, {_found(row)} was recognised by any attack tried ({_by(row)}). "
            "That does not show that none can be: see the doubts."
        )
    message = "one shared message" if row.behind == 1 else f"shared messages of {row.behind} images each"
    return f"Without defence, {_found(row)} can be recognised from {message} ({_by(row)})."


def _defended(worst: Row, base: Row | None, tone: Tone, attacks: Sequence[str]) -> str:
    if tells_labels(worst.leak):
        return f"{verdict_labels.of_defence(worst, base, tone, attacks)} {_cost(worst)}{_budget(worst)}"
    if tells_property(worst.leak):
        return f"{verdict_property.of_defence(worst, base, tone, attacks)} {_cost(worst)}{_budget(worst)}"
    name = capital(name_of(worst.defence))
    before = f", against {_found(base)} without it" if base is not None else ""
    if tone == "unknown" and not worst.informative and base is not None and _leaky(base):
        got = f"reached {_found(worst)}" if worst.recognised is None else f"recognised {_found(worst)}"
        said = (
            f"{name}: unknown, because every search failed: {listed(attacks)} {got}{before}, but a better search may find more"
        )
    elif worst.recognised is None:
        effect = {"unbroken": "no better than chance", "reduces": "less than without it", "leaks": "no less than without it"}
        lead = f"{name} {not_broken(attacks)}: the strongest" if tone == "unbroken" else f"{name}: the strongest attack tried"
        said = f"{lead} reached {_found(worst)}{before}{_elsewhere(worst)}"
        said += f", {effect[tone]}" if tone in effect and base is not None else ""
    elif tone == "unbroken":
        said = f"{name} {not_broken(attacks)}: {_found(worst)} was recognised{before}"
        said += f"; up to {percent(high(worst.recognised))} may still be, by the 95 % interval" if worst.recognised.high else ""
    elif tone == "reduces":
        said = f"{name} reduced the leak: {_found(worst)} could still be recognised{before}"
    elif tone == "leaks":
        said = f"{name} did not measurably stop the leak: {_found(worst)} could be recognised{before}"
    else:
        said = f"{name}: {_found(worst)} was recognised, but nothing was without it either, so nothing is shown"
        said = (
            said
            if base is not None
            else f"{name}: {_found(worst)} was recognised; without defence nothing was measured to compare with"
        )
    return f"{said} ({_by(worst)}).{_transformed(worst)} {_cost(worst)}{_budget(worst)}".strip()


def _elsewhere(row: Row) -> str:
    """Say so where samples do not show the class that was asked for, but another one of the attacked."""
    found, leak = row.any_class, row.leak
    if found is None or leak is None or not found.beats_chance() or leak.beats_chance():
        return ""
    where = " in one of the trainings" if len(row.seeds) > 1 else ""
    return f"; but {percent(found.value)} of the samples show some class of the attacked{where} (chance {percent(found.chance or 0.0)})"


def _transformed(row: Row) -> str:
    """Say so where the image that the defence made of the private one is found more often, or better, than the private one."""
    used, raw = row.reading(STATEMENT, "used"), row.recognised
    if used is not None and raw is not None and used.value > raw.value:
        return f" Of the images as the defence changed them, {counted(used)} could be recognised."
    copies, private = row.reading(PSNR, "used"), row.reading(PSNR, "raw")
    if used is not None or copies is None or private is None or not copies.beats_chance() or copies.value <= private.value:
        return ""
    return f" The images as the defence changed them were found at {copies.value:.3g} dB, chance {copies.chance:.3g}."


def _informed(group: Sequence[Row]) -> str:
    """Say so where an attack that models the defence gets more than the strongest that ignores it, in the same setting."""
    knowing = strongest(row for row in group if row.adaptive)
    ignoring = strongest(row for row in group if knowing and not row.adaptive and _place(row) == _place(knowing))
    if knowing is None or ignoring is None or knowing.leak is None or ignoring.leak is None:
        return ""
    said, than, sure = _found(knowing), _found(ignoring), leaks_more(knowing.leak, ignoring.leak)
    if leakage(knowing.leak) <= leakage(ignoring.leak):
        clear, blurred = knowing.reading(PSNR, "raw"), ignoring.reading(PSNR, "raw")
        if clear is None or blurred is None or not (leaks_more(clear, blurred) and clear.beats_chance()):
            return ""
        said, than, sure = f"copies of {clear.value:.0f} dB", f"copies of {blurred.value:.0f} dB", True
    unsure = "" if sure else "; the intervals overlap"
    gets = "reaches" if tells_property(knowing.leak) else "recovers"
    return f" An attacker who knows the defence {gets} {said} ({knowing.attack}), one who ignores it {than} ({ignoring.attack}){unsure}."


def cost_of(loss: Reading | None) -> str:
    """Say what a defence costs in accuracy, with its interval.

    Example:
        >>> cost_of(Reading(name="accuracy_loss", value=0.031, low=0.01, high=0.052))
        '3.1 points of accuracy (95 % interval 1.0 to 5.2)'
    """
    if loss is None:
        return "its cost in accuracy was not measured"
    said = f"{points(loss.value)} points of {utility_name(loss)}"
    if loss.low is None or loss.high is None:
        return said
    interval = f"95 % interval {points(loss.low)} to {points(loss.high)}"
    return f"{said} ({interval}{', so perhaps nothing' if loss.low <= 0 <= loss.high else ''})"


def _cost(row: Row) -> str:
    text = f"no price can be given: {row.unpriced}" if row.unpriced else cost_of(row.loss)
    return f"{capital(text)}." if row.loss is None else f"The price: {text}."


def _budget(row: Row) -> str:
    said = "; ".join(map(str, row.budgets))
    return f" Its privacy budget: {said}." if said else ""


def verdict_of(rows: Sequence[Row], judgements: Sequence[Judgement]) -> tuple[str, ...]:
    """Return the verdict: the undefended leak first, then each defence, then labels."""
    if not judgements:
        return verdict_captures.of_ungraded(rows) or ("Nothing was measured, so nothing can be said.",)
    several = len({judgement.scenario for judgement in judgements}) > 1
    sentences = [f"Scenario {j.scenario}. {j.sentence}" if several else j.sentence for j in judgements]
    return (*sentences, *_labels(rows))


def _labels(rows: Sequence[Row]) -> tuple[str, ...]:
    """Say for each scenario how many labels were read off messages, without and with each defence."""
    scenarios = dict.fromkeys(row.scenario for row in rows)
    said = {number: _labels_of([row for row in rows if row.scenario == number]) for number in scenarios}
    return tuple(f"Scenario {number}. {text}" if len(scenarios) > 1 else text for number, text in said.items() if text)


def _labels_of(rows: Sequence[Row]) -> str:
    read: dict[str, Reading] = {}
    for row in rows:
        reading, name = row.reading(LABELS), name_of(row.defence)
        if reading is not None and (name not in read or reading.value < read[name].value):
            read[name] = reading
    bare = read.pop("no defence", None)
    if bare is None:
        return ""
    chance = "" if bare.chance is None else f" (guessing gets {percent(1 - bare.chance)})"
    said = f"Labels: without defence {percent(1 - bare.value)} of the labels behind a message are read correctly{chance}"
    still = [f"{name} ({percent(1 - reading.value)})" for name, reading in read.items() if reading.beats_chance()]
    return f"{said}; still better than guessing under {listed(still)}." if still else f"{said}."
