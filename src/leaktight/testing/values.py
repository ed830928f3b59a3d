"""What every value promises, whatever its family."""

from __future__ import annotations

import json

from pydantic import ValidationError

from leaktight.core.errors import InvalidValue
from leaktight.core.value import Registered
from leaktight.testing.conformance import require


def check_value(value: Registered) -> None:
    """Check that a value goes to JSON and back, is frozen, forbids unknown settings, and says its settings.

    Args:
        value: a defence, an attack, a metric or anything else with a `kind`.

    Example:
        >>> from leaktight.defences import GaussianNoise
        >>> check_value(GaussianNoise(std=0.5))
    """
    kind, final = value.kind, type(value)
    text = json.dumps(value.to_dict())
    require(
        final.model_validate(json.loads(text)) == value,
        f"{kind} must come back from its JSON as an equal value. {text} does not.",
    )
    rebuilt = _root(final).model_validate(json.loads(text))
    require(rebuilt == value, f"{kind} must be found by its kind. {text} became {rebuilt!r}.")
    require(
        _refuses(final, {**value.to_dict(), "no_such_setting": 1}),
        f"{kind} must refuse a setting that it does not have.",
    )
    require(_is_frozen(value), f"{kind} must be frozen. Its settings can be changed.")
    for name, field in final.model_fields.items():
        setting = getattr(value, name)
        require(
            f"{name}={setting!r}" in repr(value), f"The repr of {kind} must print every setting. `{name}` is missing."
        )
        if name != "kind" and setting != field.default:
            shown = str(value)
            is_named = f"{name}={setting!r}" in shown or (
                isinstance(setting, tuple) and all(str(each) in shown for each in setting)
            )
            require(
                is_named,
                f"The str of {kind} must name every setting that is not at its default. `{name}` is missing in "
                f"{shown}.",
            )


def _root(final: type[Registered]) -> type[Registered]:
    """Return the family's root: the last class on the way up that has a family."""
    return next(each for each in reversed(final.__mro__) if issubclass(each, Registered) and each.family)


def _refuses(final: type[Registered], settings: dict[str, object]) -> bool:
    try:
        final.model_validate(settings)
    except InvalidValue:
        return True
    return False


def _is_frozen(value: Registered) -> bool:
    try:
        value.__setattr__("kind", "other")
    except ValidationError:
        return True
    return False
