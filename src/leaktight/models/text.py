"""Text: what words on the command line mean as a network."""

from __future__ import annotations

from leaktight.core import registry
from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.core.factory import FORM
from leaktight.models.factory import Factory
from leaktight.models.network import Network


def from_text(text: str) -> Network:
    """Return the network that a word on the command line names: a kind with its defaults, or a person's own code.

    Args:
        text: a registered kind (`dlnet`, `mlp`, ...) or `package.module:function`.

    Raises:
        InvalidValue: neither; the text names the closest kind.

    Example:
        >>> from_text("resnet20")
        ResNet20(kind='resnet20', width=1, norm='group')
        >>> from_text("my_project.models:small").function
        'my_project.models:small'
    """
    if ":" in text:
        return Factory(function=text)
    known: dict[str, type[Network]] = {
        kind: final
        for kind, final in registry.classes(Network.family).items()
        if not any(field.is_required() for field in final.model_fields.values())
    }
    if text not in known:
        raise InvalidValue(f"There is no model named `{text}`. {did_you_mean(text, known)} Name your own as `{FORM}`.")
    return known[text]()


def set_own(model: Network | None, **given: str | None) -> Network | None:
    """Return a person's own model with the settings that the command line gives; another model takes none.

    Args:
        model: what `--model` names; None if nothing does.
        given: settings of `Factory`, by name; None for one that was not given.

    Raises:
        InvalidValue: a setting was given, and the model is not a person's own.

    Example:
        >>> set_own(from_text("mine:net"), head="classifier.2", output=None).head
        'classifier.2'
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    if not chosen:
        return model
    if not isinstance(model, Factory):
        option = "--" + next(iter(chosen)).replace("_", "-")
        what = "names a layer of" if option == "--head" else "is a setting of"
        raise InvalidValue(f"`{option}` {what} your own model. Give that with `--model package.module:function`.")
    return Factory.model_validate({**dict(model), **chosen})
