"""Adaptation: whether an attack, as it was run, modelled the defence that it met."""

from __future__ import annotations

from leaktight.core.attack import Attack
from leaktight.core.defence import Defence
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import Attempt, Probe
from leaktight.core.record import Record
from leaktight.core.threat import Knows


def models_defence(attack: Attack | None, probe: Probe, defence: Defence) -> bool:
    """Return whether an attack models a defence and is told of it.

    An attack can model a defence only where the threat model says which it is. Whoever sits in the training plays the
    defence itself, and needs no telling.

    Args:
        attack: that of the probe, or one of several that it tries together; None is no attack.
        probe: with the threat model.
        defence: what was met.

    Example:
        >>> from leaktight.attacks import preset
        >>> from leaktight.core.threat import ThreatModel
        >>> from leaktight.defences import TopK
        >>> attack = preset("posterior")
        >>> told = ThreatModel(knows=frozenset({Knows.DEFENCE}))
        >>> [models_defence(attack, Attempt(attack=attack, threat=threat), TopK()) for threat in (told, ThreatModel())]
        [True, False]
    """
    if attack is None or not isinstance(probe, Attempt):
        return False
    return attack.adapts_to(defence) and (attack.active or Knows.DEFENCE in probe.threat.knows)


def member_of(attack: Attack, name: str) -> Attack | None:
    """Return one attack of several that are tried together; None if those of today have none of this name.

    An older record may name an attack that is not among them any more.
    """
    try:
        return attack.member(name)
    except InvalidValue:
        return None


def attacks_in(record: Record) -> list[Attack]:
    """Return the attack of a record, and those that were tried as parts of it, as far as they are known."""
    probe = record.cell.probe
    if not isinstance(probe, Attempt):
        return []
    parts = (member_of(probe.attack, name) for name in record.members)
    return [probe.attack, *(part for part in parts if part is not None)]
