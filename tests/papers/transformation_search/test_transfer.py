from __future__ import annotations

from leaktight.defences import Transformation
from leaktight.papers import Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import rows_where
from leaktight.papers.transformation_search.scales import PUBLISHED
from leaktight.transforms.policy import Policy

HYBRID = Transformation(policy=Policy.of("3-1+18-15"))


def test_transfer_has_the_policies_that_were_searched_on_the_other_set(plans: Plans) -> None:
    plan = plans["f-mnist-lenet-transfer"]
    assert HYBRID in plan.defences
    policies = {str(one.policy) for one in plan.defences if isinstance(one, Transformation)}
    assert not policies & set(PUBLISHED)
    assert plan.grid.seeds == (5, 6, 7)


def test_table_4_is_about_the_other_set(tables: Tables) -> None:
    assert {row["data_set"] for row in tables["transfer"]} == {"F-MNIST"}
    assert rows_where(tables["transfer"], policy="hybrid")[0]["trainings"] == 3
