from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from leaktight.data import ImageFolder

COLOURS = {"blue": (0, 0, 255), "red": (255, 0, 0)}


def paint(path: Path, colour, size=(40, 40), mode="RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)


def fill(folder: Path, each: int = 5, suffix: str = "png") -> Path:
    for name, colour in COLOURS.items():
        for number in range(each):
            paint(folder / name / f"{number}.{suffix}", colour)
    return folder


def test_a_sub_folder_per_class(tmp_path):
    data = ImageFolder(path=fill(tmp_path)).load()
    assert data.shape == (3, 32, 32)
    assert data.names == ("blue", "red")
    assert (len(data.train), len(data.test)) == (8, 2)
    for batch in (data.train, data.test):
        for image, label in zip(batch.inputs, batch.labels, strict=True):
            expected = np.array(COLOURS[data.names[label]]) / 255
            np.testing.assert_allclose(image.mean((1, 2)).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("test", ["test", "val"])
def test_given_training_and_test_folders(tmp_path, test):
    fill(tmp_path / "train", each=3)
    fill(tmp_path / test, each=2)
    assert ImageFolder.fits(tmp_path)
    data = ImageFolder(path=tmp_path).load()
    assert (len(data.train), len(data.test)) == (6, 4)
    assert data.names == ("blue", "red")


def test_the_middle_square_agrees_with_pillow(tmp_path):
    fill(tmp_path)
    pixels = np.random.default_rng(0).integers(0, 256, (30, 50, 3), dtype=np.uint8)
    for number in range(5):
        Image.fromarray(pixels).save(tmp_path / "red" / f"{number}.png")
    data = ImageFolder(path=tmp_path, size=12).load()
    ours = data.train.inputs[data.train.labels == 1][0].permute(1, 2, 0).numpy()
    theirs = np.asarray(Image.fromarray(pixels[:, 10:40]).resize((12, 12), Image.Resampling.BICUBIC)) / 255
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_grey(tmp_path):
    data = ImageFolder(path=fill(tmp_path), channels=1, size=8).load()
    assert data.shape == (1, 8, 8)
    assert data.train.inputs[data.train.labels == 1].unique().tolist() == pytest.approx([76 / 255])


@pytest.mark.parametrize("suffix", ["jpg", "bmp", "gif", "webp", "tiff", "ppm", "PNG"])
def test_usual_formats(tmp_path, suffix):
    data = ImageFolder(path=fill(tmp_path, suffix=suffix)).load()
    red = data.train.inputs[data.train.labels == 1].mean((0, 2, 3))
    np.testing.assert_allclose(red.numpy(), [1, 0, 0], atol=0.02)


def one(tmp_path: Path, image: Image.Image, **settings) -> np.ndarray:
    """Return how one image is read, as one colour."""
    fill(tmp_path)
    for number in range(5):
        image.save(tmp_path / "red" / f"{number}.png")
    data = ImageFolder(path=tmp_path, **settings).load()
    return data.train.inputs[data.train.labels == 1][0].mean((1, 2)).numpy()


def test_transparent_ground_is_white(tmp_path):
    np.testing.assert_allclose(one(tmp_path, Image.new("RGBA", (9, 9), (0, 0, 0, 0))), 1)


def test_palette_with_transparency(tmp_path):
    image = Image.new("P", (9, 9), 0)
    image.putpalette([10, 20, 30])
    image.info["transparency"] = b"\xff"
    np.testing.assert_allclose(one(tmp_path, image), np.array([10, 20, 30]) / 255, atol=1e-6)


def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path):
    image = Image.fromarray(np.full((9, 9), 32768, np.uint16))
    np.testing.assert_allclose(one(tmp_path, image, channels=1), 0.5, atol=0.01)


def test_cameras_held_upright_are_turned(tmp_path):
    fill(tmp_path)
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:4] = 255
    exif = Image.Exif()
    exif[0x0112] = 3
    for number in range(5):
        Image.fromarray(pixels).save(tmp_path / "red" / f"{number}.png", exif=exif)
    data = ImageFolder(path=tmp_path, size=8).load()
    turned = data.train.inputs[data.train.labels == 1][0]
    assert turned[:, :4].max() == 0
    assert turned[:, 4:].min() == 1


def test_other_and_hidden_files_are_ignored(tmp_path):
    fill(tmp_path)
    (tmp_path / "README.txt").write_text("hello")
    (tmp_path / "red" / "notes.txt").write_text("hello")
    (tmp_path / "red" / "._0.png").write_text("hello")
    (tmp_path / ".git").mkdir()
    assert len(ImageFolder(path=tmp_path).load().train) == 8


def test_only_what_the_limit_leaves_is_opened(tmp_path):
    fill(tmp_path / "train", each=6)
    fill(tmp_path / "test", each=1)
    data = ImageFolder(path=tmp_path, train_limit=2).load()
    assert sorted(data.train.labels.tolist()) == [0, 1]


@pytest.mark.parametrize("harm", ["text", "truncated", "empty"])
def test_an_unreadable_image_is_named(tmp_path, harm, says):
    fill(tmp_path)
    file = tmp_path / "blue" / "3.png"
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file)
    content = {"text": b"not an image", "truncated": file.read_bytes()[:2000], "empty": b""}[harm]
    file.write_bytes(content)
    with says(f"The file `{file}` must be an image", "remove or replace it"):
        ImageFolder(path=tmp_path).load()


def test_wrong_folders(tmp_path, says):
    with says("There is no file or folder", "nowhere"):
        ImageFolder(path=tmp_path / "nowhere").load()
    with says("a sub-folder of images for each class"):
        ImageFolder(path=tmp_path).load()
    fill(tmp_path)
    (tmp_path / "green").mkdir()
    with says("The class folder", "green", "must hold images"):
        ImageFolder(path=tmp_path).load()


def test_a_class_that_only_the_test_folder_has(tmp_path, says):
    fill(tmp_path / "train")
    fill(tmp_path / "test")
    paint(tmp_path / "test" / "green" / "0.png", (0, 255, 0))
    with says("occur in training", "`green`"):
        ImageFolder(path=tmp_path).load()


def test_one_class_is_not_enough(tmp_path, says):
    paint(tmp_path / "red" / "0.png", (255, 0, 0))
    paint(tmp_path / "red" / "1.png", (255, 0, 0))
    with says("at least 2 classes"):
        ImageFolder(path=tmp_path).load()
