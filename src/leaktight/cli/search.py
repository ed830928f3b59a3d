"""`leaktight search`: find a transformation policy that hides images from whoever sees their gradients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from leaktight.cli.interruption import stop_with
from leaktight.cli.output_options import Json, Quiet
from leaktight.cli.worker_options import Address, Backend, Workers, open_workers

if TYPE_CHECKING:
    from leaktight.search import Search

EXAMPLES = """
\b
Examples:
  leaktight search --candidates 50 --epochs 5 --verify         bundled photos, some minutes
  leaktight search --model lenet --data digits --resize        digits of 8x8 are brought to 16x16
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
    trained: Annotated[
        int,
        typer.Option(help="With how many of the most private candidates a model is trained briefly; 0 trusts scores."),
    ] = 8,
    steps: Annotated[int, typer.Option(help="How many steps each of these training runs takes.")] = 300,
    loss: Annotated[float, typer.Option(help="How much accuracy may be lost in them, as 0.05.")] = 0.05,
    resize: Annotated[
        bool, typer.Option("--resize", help="Bring images that are too small for the network to a side that it takes.")
    ] = False,
    verification: Annotated[
        bool,
        typer.Option("--verify", help="Attack the chosen policy with the strongest attacker, and train with it."),
    ] = False,
    epochs: Annotated[
        int, typer.Option(help="How long the model trains on its tenth of the data before scoring.")
    ] = 50,
    seed: Annotated[int, typer.Option(help="What all randomness derives from.")] = 0,
    workers: Workers = None,
    backend: Backend = "local",
    address: Address = None,
    device: Annotated[Literal["auto", "cpu", "cuda", "mps"], typer.Option(help="Where tensors live.")] = "cpu",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Search for image transformations after which gradients say little about the images, and the model still learns.

    Scored are test images after the first 100, or where these are too few training images that the model of the search
    is not trained on. Finished scores are kept in a folder beside the file: after an interruption the same command
    resumes.
    """
    from leaktight.cli.policy_result import as_json, audit_of, picture_of, show, words_of
    from leaktight.cli.progress import Bar
    from leaktight.data import from_text as data_from
    from leaktight.models import from_text as model_from
    from leaktight.search import Search, enlarge_for, verify, write_picture
    from leaktight.search import search as run

    network, source = model_from(model), data_from(data)
    wanted: dict[str, Any] = {"library": _indices(library), "threshold": threshold}
    settings = Search(
        data=enlarge_for(source, network) if resize else source,
        model=network,
        candidates=candidates,
        functions=functions,
        policies=policies,
        images=images,
        trained=trained,
        steps=steps,
        loss=loss,
        method=method,
        epochs=epochs,
        seed=seed,
        device=device,
        **{name: value for name, value in wanted.items() if value is not None},
    )
    with (
        stop_with("finished scores are kept; run the same command to resume."),
        open_workers(backend, workers, address) as pool,
        Bar(quiet=quiet, title=_title(settings, pool), steady=True) as bar,
    ):
        result = run(settings, out, workers=pool, progress=bar.step)
        write_picture(picture_of(out), settings, result.policy)
        found = verify(settings, result.policy, audit_of(out), pool, bar.step) if verification else None
    bar.end()
    if json:
        typer.echo(as_json(result, out, found))
    elif quiet:
        typer.echo("\n".join(words_of(result, out, found)))
    else:
        show(result, out, verification=found)


def _title(settings: Search, workers: object) -> str:
    """Say what is about to run, in numbers."""
    from leaktight.core.display import count

    who = count(workers, "worker") if isinstance(workers, int) else "Ray"
    return (
        f"Search: {settings.candidates} candidates of at most {count(settings.functions, 'function')}, scored on "
        f"{settings.images} images of {settings.data}; {who}."
    )


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
