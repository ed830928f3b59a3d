"""Values: frozen, validated settings that go to JSON and back, and find their class by `kind`."""

from __future__ import annotations

import hashlib
import json
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from leaktight.core import registry
from leaktight.core.errors import from_validation


class Value(BaseModel):
    """A frozen set of settings; a fault in them is one `InvalidValue` with a sentence for each."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="strings")

    @model_validator(mode="wrap")
    @classmethod
    def _validate(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            raise from_validation(cls, error) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON types; infinity becomes a word, as standard JSON has no number for it."""
        settings: dict[str, Any] = json.loads(self.model_dump_json(serialize_as_any=True))
        return settings

    @property
    def key(self) -> str:
        """A short name for exactly these settings: the hash of their canonical JSON."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Registered(Value):
    """A value of a family (defences, attacks, ...): a mapping with its `kind` becomes the class of that name.

    A direct subclass with `family` set is the family's root. Below it, each final class declares
    `kind: Literal["its_name"] = "its_name"` and is registered by that alone.
    """

    family: ClassVar[str] = ""
    title: ClassVar[str] = ""
    """What people call it, such as "top-k"; its kind with spaces unless the class states it."""
    kind: str = ""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        kind = cls.model_fields["kind"].default
        if cls.family and kind:
            registry.add(cls.family, kind, cls)
            if "title" not in vars(cls):
                cls.title = kind.replace("_", " ")

    @model_validator(mode="wrap")
    @classmethod
    def _validate(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, dict) and not cls.model_fields["kind"].default:
            value: Self = registry.find(cls.family, str(data.get("kind", "")), cls).model_validate(data)
            return value
        try:
            return handler(data)
        except ValidationError as error:
            raise from_validation(cls, error) from None

    def __str__(self) -> str:
        """Name the kind and every setting that is not at its default."""
        shown = ", ".join(
            f"{name}={getattr(self, name)!r}"
            for name, field in type(self).model_fields.items()
            if name != "kind" and getattr(self, name) != field.default
        )
        return f"{self.kind}({shown})" if shown else self.kind
