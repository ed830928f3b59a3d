import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image

from leaktight.captures import AsCaptured
from leaktight.core.metric import Reading
from leaktight.defences import GaussianNoise, TopK
from leaktight.findings.redaction import redact_records
from leaktight.findings.summary import summarise
from leaktight.report.page import Page
from leaktight.report.pictures import SHOWN, blocks_of, data_address, drawable, pictures_section


def decoded(address):
    head, content = address.split(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_comes_back_to_the_last_pixel(channels):
    image = torch.randint(0, 256, (channels, 5, 7), dtype=torch.uint8)
    expected = image.permute(1, 2, 0).squeeze(2).numpy() if channels == 1 else image.permute(1, 2, 0).numpy()
    assert np.array_equal(decoded(data_address(image)), expected)


def blocks(records, pictures):
    return blocks_of(summarise(records).judgements, pictures, 20.0)


def test_defences_on_the_same_images_stand_under_one_row_of_originals(made):
    records = [made.record(psnr=38), made.record(GaussianNoise(), psnr=9)]
    (strips,) = blocks(records, made.gallery(records))
    assert [strip.name for strip in strips] == ["Original", "No defence", "Gaussian noise (std 0.01)"]
    assert [strip.original for strip in strips] == [True, False, False]
    assert all(picture.recognised for picture in strips[1].pictures)
    assert not any(picture.recognised for picture in strips[2].pictures)
    assert len(strips[1].pictures) == SHOWN
    assert strips[1].detail == "dlg2019; batches of 1, before training"


def test_other_images_get_originals_of_their_own(made):
    records = [made.record(psnr=38), made.record(GaussianNoise(), psnr=9)]
    whole = made.gallery(records)

    def pictures(key):
        found = whole(key)
        return found if key == records[0].cell.key else {name: tensor.flip(0) for name, tensor in found.items()}

    assert len(blocks(records, pictures)) == 2


def test_images_that_a_defence_changed_are_shown_too(made):
    records = [made.record(TopK(), psnr=30)]
    whole = made.gallery(records)
    (strips,) = blocks(records, lambda key: {**whole(key), "truth_used": whole(key)["truth_raw"].flip(3)})
    assert [strip.detail for strip in strips][:2] == ["private", "as the defence changed the images"]
    assert strips[1].original


def test_captions_name_likeness_and_the_label_that_was_read(made):
    records = [made.record(psnr=38)]
    whole = made.gallery(records)

    def pictures(key):
        found = whole(key)
        return {**found, "guess": found["truth_raw"], "guess_labels": torch.full((8,), -1)}

    (strips,) = blocks(records, pictures)
    assert strips[1].pictures[0].caption == "exact"
    assert strips[1].pictures[0].label == ""
    assert strips[0].pictures[1].label == "class 1"
    assert blocks(records, whole)[0][1].pictures[1].label == "class 1"
    assert "recovered without defence" in strips[1].pictures[0].text


def test_captions_name_classes_as_the_data_do(made):
    records = [made.record(psnr=38).model_copy(update={"class_names": ("cat", "7")})]
    (strips,) = blocks(records, made.gallery(records))
    for strip in strips:
        assert [picture.label for picture in strip.pictures[:2]] == ["cat", "class 7"]
    (strips,) = blocks(redact_records(records), lambda key: made.gallery(records)(records[0].cell.key))
    assert strips[0].pictures[0].label == "class 0"


@pytest.mark.parametrize("shape", [(8, 20), (0, 3, 4, 4), (8, 2, 4, 4)])
def test_what_is_not_a_grey_or_colour_image_is_not_drawn(shape):
    tensor = torch.zeros(shape, dtype=torch.uint8)
    assert drawable({"truth_raw": tensor, "truth_used": tensor, "guess": tensor}) is None


def test_missing_or_unequal_pictures_are_not_drawn(made):
    image = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
    assert drawable(None) is None
    assert drawable({}) is None
    assert drawable({"truth_raw": image, "guess": image}) is None
    assert drawable({"truth_raw": image, "truth_used": image, "guess": image[:1]}) is None
    assert blocks([made.record()], lambda key: None) == []


def test_of_guesses_that_nobody_graded_those_that_explain_most_come_first(made):
    def ungraded(label, attack, left, noise):
        readings = [
            (Reading(name="objective", value=value, n=8, each=(value,) * 8), Reading(name="diverged", value=0, n=8))
            for value in (left, noise)
        ]
        common = {"psnr": None, "accuracy": None, "label": label, "attack": attack}
        return [
            made.record(AsCaptured(), extra=readings[0], **common),
            made.record(AsCaptured(), extra=readings[1], purpose="null", **common),
        ]

    records = [*ungraded("weak", made.DLG, 200.0, 225.0), *ungraded("strong", made.GEIPING, 1e-6, 225.0)]
    guesses = {"guess": torch.zeros(8, 1, 4, 4, dtype=torch.uint8), "guess_labels": torch.arange(8)}
    section = pictures_section(Page.of(records, made.plan(), made.VERSIONS, lambda key: guesses, redact=False))
    assert [strip.detail.split(";")[0] for [strip] in section.values["blocks"]] == ["strong", "weak"]
    assert not section.values["graded"]
