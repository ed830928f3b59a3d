"""Flags about captures: why an attack on them may have failed, or what its success is worth.

Each check is one cause.
"""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.captures import AsCaptured, Captured
from leaktight.captures.known import SETTINGS, phrase_assumptions
from leaktight.core.display import join_words
from leaktight.core.probe import DIVERGED, Attempt
from leaktight.core.record import Record, Status
from leaktight.findings.display import label_of
from leaktight.findings.flag import Flag
from leaktight.findings.kind import LeakKind, leak_kinds

_ASSUMED = ("optimiser", "momentum", "weight_decay", "examples", "mean")
"""Settings that are assumed and have no flag of their own."""


def not_graded(records: Sequence[Record]) -> list[Flag]:
    """Without the truth nobody knows how close a guess is."""
    blind = [record for record in _on_captures(records) if not _has_truth(record)]
    said = (
        "Nobody gave the private batches behind the captured messages, so no reconstruction or label is graded. "
        "Their owner can add them with `--truth`."
    )
    return [Flag("not_graded", said, _keys(blind))] if blind else []


def without_truth(records: Sequence[Record]) -> list[Flag]:
    """With the truth, messages whose batch it does not hold are not looked at."""
    found = [record for record in _on_captures(records) if record.notes.get("captures.left_out", 0)]
    if not found:
        return []
    groups = {record.cell.scenario.key: record.notes["captures.left_out"] for record in found}
    said = (
        f"{sum(groups.values()):.0f} captured messages were left out, "
        "because the truth holds no private batch for them."
    )
    return [Flag("without_truth", said, _keys(found), "info")]


def blank_chance(records: Sequence[Record]) -> list[Flag]:
    """Without public examples the chance level is that of grey or noise, which a blurred mean would beat."""
    plain = [
        record
        for record in _on_captures(records)
        if _has_truth(record) and _rebuilds(record) and _public(record) is None
    ]
    said = (
        "Chance levels are those of grey and noise, as no public examples were given: an attack that answers a mean "
        "image beats them. Give examples of the same kind with `--data`."
    )
    return [Flag("blank_chance", said, _keys(plain))] if plain else []


def vanishing_gradients(records: Sequence[Record]) -> list[Flag]:
    """A gradient that has faded tells little of the examples behind it, and nothing of a defence."""
    return _flag_note(
        records,
        "vanished",
        "vanishing_gradients",
        "{count} of {total} captured messages are faint, or fade on their way to the first layer, so that little of "
        "the examples is left in them: an attack that fails there shows vanishing gradients, not protection. Record "
        "messages from earlier in training too.",
    )


def batch_norm_in_training(records: Sequence[Record]) -> list[Flag]:
    """Attacks replay batch norm by its running statistics; a participant that trained used those of its batch."""
    return _flag_note(
        records,
        "batch_norms",
        "batch_norm_in_training",
        "Batch norm (layers: {count}) normalised by the private batch, while attacks replay it by running statistics: "
        "a failure may be that mismatch. Train with it in evaluation mode, or read the numbers as a lower bound of the "
        "leak.",
    )


def dropout_in_training(records: Sequence[Record]) -> list[Flag]:
    """Attacks replay dropout switched off; a participant that trained drew at random."""
    return _flag_note(
        records,
        "dropouts",
        "dropout_in_training",
        "Dropout (layers: {count}) drew at random, and no attack here knows its draws: a failure may be that. Read "
        "the numbers as a lower bound.",
    )


def label_counts_unknown(records: Sequence[Record]) -> list[Flag]:
    """Of several examples the labels are an estimate, and of an unknown number of examples not even that."""
    unknown = _flag_note(
        records,
        "unknown_examples",
        "label_counts_unknown",
        "Nobody told how many examples are behind {count} of {total} captured messages: they were attacked as if it "
        "were one to each step. Record `examples`.",
    )
    return unknown or _flag_note(
        records,
        "several_examples",
        "label_counts_unknown",
        "Behind {count} of {total} captured messages are several examples, whose labels were only estimated from the "
        "last layer: with wrong counts a search cannot succeed. An attacker who knows the labels gets more.",
        "info",
    )


def local_steps_unknown(records: Sequence[Record]) -> list[Flag]:
    """An update of unknown steps can only be taken for one of them."""
    return _flag_note(
        records,
        "unknown_steps",
        "local_steps_unknown",
        "How many local steps of what size made {count} of {total} captured updates is unknown: each was attacked as "
        "one step, so that only its direction counts. State them, such as `--known local_steps=1 --known "
        "learning_rate=0.1`; an attacker can guess them.",
    )


def settings_assumed(records: Sequence[Record]) -> list[Flag]:
    """What nobody recorded of how messages were made is assumed, and said."""
    found = [record for record in _on_captures(records) if isinstance(record.cell.defence, AsCaptured)]
    names = [name for name in _ASSUMED if any(record.notes.get(f"captures.assumed_{name}", 0) for record in found)]
    if not names:
        return []
    failed = not any(_succeeds(record) for record in found)
    stated = " ".join(f"--known {part.strip()}" for name in names for part in _words(SETTINGS[name].stated))
    said = (
        f"Nobody recorded how the captured messages were made, so attacks assumed {phrase_assumptions(names)}. "
        f"{'If that is wrong, an attack that fails shows nothing. ' if failed else ''}"
        f"State what is true, such as `{stated}`."
    )
    return [Flag("settings_assumed", said, _keys(found), "doubt" if failed else "info")]


def optimiser_not_replayed(records: Sequence[Record]) -> list[Flag]:
    """Attacks replay plain SGD, with momentum or not, and Adam; steps of any other optimiser are taken for those."""
    return _flag_note(
        records,
        "not_replayed",
        "optimiser_not_replayed",
        "The steps of {count} of {total} captured updates were made by an optimiser that attacks do not replay: they "
        "took them for those of SGD or Adam, and a failure may be that. Read the numbers as a lower bound of the leak.",
    )


def diverged(records: Sequence[Record]) -> list[Flag]:
    """A search that diverged found nothing, whatever is in the message."""
    flags = []
    for record in _on_captures(records):
        lost = record.reading(DIVERGED)
        if lost is not None and lost.value:
            flags.append(
                Flag(
                    "diverged",
                    f"{lost.value:.0f} of {lost.n} searches of {label_of(record.cell)} diverged, so that their failure "
                    "says nothing about the messages. Use a smaller learning rate, more restarts or another attack.",
                    (record.cell.key,),
                )
            )
    return flags


def captured_not_broken(records: Sequence[Record]) -> list[Flag]:
    """With the truth, one can say that a defence was not broken by attacks that work without it.

    They succeed on what would have been sent without it, and none succeeds on what was sent.
    """
    flags = []
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in _on_captures(records):
        if _has_truth(record):
            groups.setdefault((record.cell.scenario.key, record.cell.batch_size), []).append(record)
    for group in groups.values():
        sent = [record for record in group if isinstance(record.cell.defence, AsCaptured)]
        open_to = [record for record in group if record not in sent and _succeeds(record)]
        if sent and open_to and not any(map(_succeeds, sent)):
            names = join_words(list(dict.fromkeys(label_of(record.cell) for record in open_to)))
            said = (
                f"What the senders did was not broken by {names}, though they read the same batches where nothing is "
                "done to them. A stronger attack may get through. Labels are judged apart."
            )
            flags.append(Flag("captured_not_broken", said, _keys([*open_to, *sent]), "info"))
    return flags


def _words(stated: str) -> list[str]:
    """Return what is stated to a recorder as the command line takes it.

    Example:
        >>> _words("mean=(), std=()"), _words("optimiser='sgd'")
        (['mean=none', 'std=none'], ['optimiser=sgd'])
    """
    return [part.replace("()", "none").replace("'", "") for part in stated.split(", ")]


def _on_captures(records: Sequence[Record]) -> list[Record]:
    """Return what was measured on captures by an attack."""
    return [
        record
        for record in records
        if isinstance(record.cell.scenario, Captured)
        and record.cell.purpose == "measure"
        and record.status is Status.DONE
        and isinstance(record.cell.probe, Attempt)
    ]


def _flag_note(records: Sequence[Record], note: str, name: str, sentence: str, severity: str = "doubt") -> list[Flag]:
    """Return a flag if this was noted of captures where no attack got through.

    Without the truth nobody knows whether one did.
    """
    found = [record for record in _on_captures(records) if isinstance(record.cell.defence, AsCaptured)]
    noted = [record for record in found if record.notes.get(f"captures.{note}", 0)]
    if not noted or any(_succeeds(record) for record in found):
        return []
    # Attacks share the messages of a scenario and a batch size.
    groups = {(record.cell.scenario.key, record.cell.batch_size): record.notes for record in noted}
    layers = note in ("batch_norms", "dropouts")
    counts = [notes[f"captures.{note}"] for notes in groups.values()]
    total = sum(notes["captures.messages"] for notes in groups.values())
    count = max(counts) if layers else sum(counts)
    said = sentence.format(count=round(count), total=round(total))
    return [Flag(name, said, _keys(noted), "info" if severity == "info" else "doubt")]


def _succeeds(record: Record) -> bool:
    """Return whether an example was rebuilt."""
    return any(kind.succeeds(record) for kind in _rebuilding_kinds())


def _rebuilds(record: Record) -> bool:
    """Return whether the attack was after examples, and its copies were graded."""
    return any(reading.name in kind.names for kind in _rebuilding_kinds() for reading in record.readings)


def _rebuilding_kinds() -> list[LeakKind]:
    return [kind for kind in leak_kinds() if kind.rebuilds]


def _has_truth(record: Record) -> bool:
    return isinstance(record.cell.scenario, Captured) and bool(record.cell.scenario.truth)


def _public(record: Record) -> object:
    return record.cell.scenario.public if isinstance(record.cell.scenario, Captured) else None


def _keys(records: Sequence[Record]) -> tuple[str, ...]:
    return tuple(record.cell.key for record in records)
