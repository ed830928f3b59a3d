"""`leaktight search`: find a transformation policy that hides images from whoever sees their gradients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from leaktight.cli.interruption import stop_with
from leaktight.cli.worker_options import Address, Engine, Workers, open_workers

if TYPE_CHECKING:
    from leaktight.search import Result

EXAMPLES = """
\b
Examples:
  leaktight search --candidates 50 --epochs 5                  bundled photos, some minutes
  leaktight search --model resnet20 --data cifar100/ --out policy.toml
  leaktight search --model mine.models:net --data mine.npz --threshold 1.5 --workers 2
"""


def search(
    model: Annotated[str, typer.Option(help="A model kind, or your own as package.module:function.")] = "convnet",
    data: Annotated[str, typer.Option(help="A data kind, a file or folder, or package.module:function.")] = "photos",
    out: Annotated[Path, typer.Option(help="The file for the policy.")] = Path("policy.toml"),
    candidates: Annotated[int, typer.Option(help="How many policies are drawn; more find better ones.")] = 1500,
    functions: Annotated[int, typer.Option(help="How many functions a policy has at most.")] = 3,
    policies: Annotated[int, typer.Option(help="How many policies are chosen and mixed.")] = 2,
    threshold: Annotated[
        float | None,
        typer.Option(help="How many times worse than untransformed the accuracy score may be.", show_default="1.1"),
    ] = None,
    images: Annotated[int, typer.Option(help="How many images each policy is scored on.")] = 100,
    method: Annotated[
        Literal["racing", "random"], typer.Option(help="Drop the clearly bad early, or score all on all images.")
    ] = "racing",
    library: Annotated[
        str | None, typer.Option(help="Functions to choose from, as 3,1,7.", show_default="all fifty, 0 to 49")
    ] = None,
    epochs: Annotated[
        int, typer.Option(help="How long the model trains on its tenth of the data before scoring.")
    ] = 50,
    seed: Annotated[int, typer.Option(help="What all randomness derives from.")] = 0,
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    device: Annotated[Literal["auto", "cpu", "cuda", "mps"], typer.Option(help="Where tensors live.")] = "cpu",
) -> None:
    """Search for image transformations after which gradients say little about the images, and the model still learns.

    Scored are test images after the first 100, or where these are too few training images that the model of the search
    is not trained on. Finished scores are kept in a folder beside the file: after an interruption the same command goes
    on.
    """
    from leaktight.cli.progress import Bar
    from leaktight.data import from_text as data_from
    from leaktight.models import from_text as model_from
    from leaktight.search import Search
    from leaktight.search import search as run

    wanted: dict[str, Any] = {"library": _indices(library), "threshold": threshold}
    settings = Search(
        data=data_from(data),
        model=model_from(model),
        candidates=candidates,
        functions=functions,
        policies=policies,
        images=images,
        method=method,
        epochs=epochs,
        seed=seed,
        device=device,
        **{name: value for name, value in wanted.items() if value is not None},
    )
    with (
        stop_with("finished scores are kept; run the same command to resume."),
        Bar() as bar,
        open_workers(engine, workers, address) as pool,
    ):
        result = run(settings, out, workers=pool, progress=bar.step)
    typer.echo("\n".join(result_lines(result, out)))


def _indices(text: str | None) -> tuple[int, ...] | None:
    """Return the indices in a text like 3,1,7."""
    from leaktight.core.errors import InvalidValue
    from leaktight.transforms.library import is_index

    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(map(is_index, parts)):
        raise InvalidValue(f"The `--library` must be indices of functions, as 3,1,7. Got {text!r} instead.")
    return tuple(map(int, parts))


def result_lines(result: Result, out: Path) -> list[str]:
    """Return what a person needs to know of a result: the policy, its scores, and how to use it."""
    plain = result.untransformed
    lines = [
        f"Policy {result.policy}, chosen from {result.distinct} different ones; {result.passed} were good enough in "
        "accuracy.",
        "",
        "policy           privacy score (lower is more private)  accuracy score (higher is better)",
    ]
    for one in (*result.chosen, plain):
        low, high = one.interval
        interval = "" if low is None or high is None else f" ({low:.4f} to {high:.4f})"
        lines.append(f"{one.policy or 'as it is':<15}  {f'{one.privacy:.4f}{interval}':<37}  {one.accuracy:.4f}")
    if result.privacy >= plain.privacy:
        lines += ["", "It is no more private than images as they are: draw more candidates, or raise the threshold."]
    return [
        *lines,
        "",
        f"Written to {out}. In a plan for `leaktight audit`:",
        "",
        "  [[defences]]",
        '  kind = "transformation"',
        f"  file = {json.dumps(str(out), ensure_ascii=False)}",
        "",
        "In PyTorch, as the transform of a Dataset:",
        "",
        "  from leaktight.transforms import Policy",
        f'  transform = Policy.of("{result.policy}").transform()',
        "  image = transform(image)",
    ]
