"""The file of a layer study: what is written is what `layer_guard` reads."""

import json
import stat

from leaktight.core.metric import Reading
from leaktight.defences.ranking import read_ranking
from leaktight.findings.layer_file import write_layers
from leaktight.findings.layer_risk import LayerRow


def row(layer: str, **values: float) -> LayerRow:
    return LayerRow(
        layer, {name: Reading(name=name, value=value, low=value - 0.1, layer=layer) for name, value in values.items()}
    )


ROWS = [
    row("body.conv1", property_auc=0.6, v_information=0.1, psnr=30.0),
    row("body.linear1", property_auc=0.9, v_information=0.5, psnr=12.0),
    row("body.linear2", property_auc=0.8, v_information=0.4, psnr=11.0),
    row("head", property_auc=0.7, v_information=0.3, psnr=10.0),
]


def test_a_guard_reads_the_ranking_back(tmp_path):
    path = tmp_path / "result" / "layers.json"
    write_layers(path, ROWS)
    assert read_ranking(path, "property") == ("body.linear1", "body.linear2", "head", "body.conv1")
    assert read_ranking(path, "reconstruction")[0] == "body.conv1"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_number_is_in_it(tmp_path):
    path = tmp_path / "layers.json"
    write_layers(path, ROWS)
    found = json.loads(path.read_text())
    assert [one["layer"] for one in found["layers"]] == [one.layer for one in ROWS]
    assert found["layers"][1]["risk"]["property_auc"] == {
        "value": 0.9,
        "low": 0.8,
        "high": None,
        "n": 1,
        "chance": None,
    }
    [together] = [one for one in found["correlation"] if one["metric"] == "v_information"]
    assert together["attack"] == "property_auc"
    assert together["r"] > 0.9
    assert together["n"] == 4


def test_without_rows_there_is_nothing_to_rank(tmp_path):
    path = tmp_path / "layers.json"
    write_layers(path, [])
    assert json.loads(path.read_text()) == {
        "format": 1,
        "about": [],
        "layers": [],
        "ranking": {},
        "sealing": {},
        "correlation": [],
    }
