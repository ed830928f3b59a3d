"""A picture of a policy: eight images as they are, and below them what became of each."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from leaktight.core.draws import public_draws
from leaktight.core.private import write_private
from leaktight.search.settings import Search
from leaktight.transforms.batched import as_image
from leaktight.transforms.images import as_bytes
from leaktight.transforms.policy import Policy

IMAGES, SIDE, GAP = 8, 64, 4
WHITE = (255, 255, 255)


def write_picture(path: Path, search: Search, policy: Policy) -> None:
    """Write the first test images and what a policy made of them as a PNG; test images are public.

    Args:
        path: where to.
        search: whose data.
        policy: what they go through.
    """
    images = search.data.load().test.inputs[:IMAGES]
    changed = policy.apply(images, public_draws(search.seed, "search", "picture"))
    step = SIDE + GAP
    sheet = Image.new("RGB", (step * len(images) + GAP, 2 * step + GAP), WHITE)
    for row, each in enumerate((images, changed)):
        for column, pixels in enumerate(as_bytes(each)):
            tile = as_image(pixels).convert("RGB").resize((SIDE, SIDE), Image.Resampling.NEAREST)
            sheet.paste(tile, (GAP + column * step, GAP + row * step))
    content = io.BytesIO()
    sheet.save(content, "PNG")
    write_private(path, content.getvalue())
