"""Privacy-preserving Collaborative Learning with Automatic Transformation Search: images that are transformed before anybody trains on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from leaktight.papers.paper import Order, Paper, Plans, Records
from leaktight.papers.reproduction import Check, Tables
from leaktight.papers.transformation_search.checks import checks_of
from leaktight.papers.transformation_search.definition import definition_rows
from leaktight.papers.transformation_search.measured import Measured
from leaktight.papers.transformation_search.notes import notes_of
from leaktight.papers.transformation_search.plans import Found, plans_of
from leaktight.papers.transformation_search.published import published
from leaktight.papers.transformation_search.searches import searches
from leaktight.papers.transformation_search.settings import study_of
from leaktight.papers.transformation_search.similarity import similarity_rows
from leaktight.papers.transformation_search.tables import tables_of
from leaktight.running.scheduler import Progress
from leaktight.running.worker_pool import Workers

_PLACE = ("data_set", "network")


class TransformationSearch(Paper):
    """Policies of image transformations that are searched by two scores, and what attacks find of images that went through them.

    Ten participants train by federated SGD on transformed images alone; attacks see the gradient of one image, and are given its label: at the
    end of the training, but before it at the smaller scales. `prepare` searches the policies, the audits measure them.

    Differs from the paper: PSNR is also taken against the original image, and two attackers know the policy. Fig. 2 is measured on one
    undefended training whose messages are made anew under each policy. There is no weight decay. The scales `smoke` and `small` have smaller
    networks and data, fewer iterations, shorter trainings and no crop and flip; `settings` says which. The tables `adaptive`,
    `privacy_aware` and `networks` are ours. Pictures as in Fig. 4 are in the reports of the audits.

    Args:
        found: the searched hybrid of each subject, by its name; `prepare` finds them.

    References:
        Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021, sections 4 to 6.
    """

    name: ClassVar[str] = "transformation-search"
    title: ClassVar[str] = "Privacy-preserving Collaborative Learning with Automatic Transformation Search (Gao et al. 2021)"
    keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "policies": (*_PLACE, "policy"),
        "attacks": (*_PLACE, "attack", "policy"),
        "defences": (*_PLACE, "defence"),
        "transfer": (*_PLACE, "policy"),
        "correlation": (*_PLACE, "scored", "attacked", "against"),
        "points": (*_PLACE, "policy"),
        "training": (*_PLACE, "policy", "rounds"),
        "functions": (*_PLACE, "function"),
        "similarity": (*_PLACE, "policy", "layer", "iterations"),
        "adaptive": (*_PLACE, "policy", "attack"),
        "privacy_aware": (*_PLACE, "policy", "attack"),
        "networks": (*_PLACE, "policy"),
    }

    def __init__(self, found: Found | None = None) -> None:
        self.found: Found = found or {}

    def prepare(self, order: Order, folder: Path, workers: Workers = 1, progress: Progress | None = None) -> Paper:
        """Search the policies of every subject, or take them from an earlier run in the folder."""
        return TransformationSearch(searches(study_of(order), folder, order.seed, workers, progress))

    def plans(self, order: Order) -> Plans:
        """Return the audits of every subject."""
        return plans_of(study_of(order), self.found, order.seed)

    def tables(self, order: Order, records: Records) -> Tables:
        """Return the tables, in the order of the paper, and then ours."""
        measured = Measured(study_of(order), self.found, order.seed, records)
        tables = tables_of(measured)
        tables["similarity"] = similarity_rows(measured)
        tables["privacy_aware"] = definition_rows(measured)
        return {name: tables[name] for name in self.keys}

    def published(self) -> Tables:
        """Return Tables 1 to 4, and what the text says about the figures."""
        found = published()
        return {name: found[name] for name in self.keys}

    def checks(self, tables: Tables) -> list[Check]:
        """Return what the paper claims."""
        return checks_of(tables)

    def cut(self, order: Order) -> str:
        """Return what `steps` cuts."""
        study = study_of(order)
        smaller = ", 200 training and 50 test images" if order.scale != "smoke" else ""
        return (
            f"{study.search.candidates} candidates, {study.rounds} rounds, attacks on 2 images by at most {order.steps} iterations, one seed, "
            f"{study.compared} policies compared, scores on {study.samples} images{smaller}"
        )

    def notes(self, order: Order) -> list[str]:
        """Say where our numbers and the published ones are not of the same thing."""
        return notes_of(study_of(order), self.found)
