from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Row
from leaktight.papers.row import number


def test_few_entries_stand_beside_all(only: Callable[..., Row]) -> None:
    few, whole = (only("entries", task="gender", layer=4, entries=name) for name in ("48 random", "pooled, all"))
    assert (number(few, "property_auc"), number(whole, "property_auc")) == pytest.approx((0.806, 0.906))
    assert (number(few, "v_information"), number(whole, "v_information")) == pytest.approx((0.306, 0.406))
