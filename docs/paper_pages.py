"""Write the pages about papers from the results in `docs/results`: `python docs/paper_pages.py`.

A result is what `leaktight reproduce PAPER --scale small --json docs/results/PAPER.json` wrote. A paper without one
gets a page that says so. A test compares the pages with what this makes.
"""

from __future__ import annotations

from pathlib import Path

from leaktight.papers import PAPERS
from leaktight.papers.markdown import claims_table, paper_page, pictures, read_result
from leaktight.papers.reproduction import Reproduction

DOCS = Path(__file__).parent
RESULTS = DOCS / "results"
PAGES = DOCS / "papers"
OPENING, CLOSING = "<!-- claims -->\n", "<!-- end -->\n"


def results() -> dict[str, Reproduction | None]:
    """Return the result of each paper; None where there is no file."""
    files = {name: RESULTS / f"{name}.json" for name in PAPERS}
    return {
        name: read_result(path.read_text(encoding="utf-8"), PAPERS[name]) if path.is_file() else None
        for name, path in files.items()
    }


def pages() -> dict[Path, str]:
    """Return the text of every file that is made, by its place."""
    found = results()
    made: dict[Path, str] = {}
    for name, paper in PAPERS.items():
        done = found[name]
        made[PAGES / f"{name}.md"] = paper_page(paper, done)
        drawn = {} if done is None else pictures(done)
        made |= {PAGES / name / f"{table}.svg": drawing for table, drawing in drawn.items()}
    front = DOCS / "papers.md"
    before, opening, rest = front.read_text(encoding="utf-8").partition(OPENING)
    _, closing, after = rest.partition(CLOSING)
    if not (opening and closing):
        raise ValueError(f"The page papers.md must have a place for the table: `{OPENING}` and `{CLOSING}`.")
    made[front] = f"{before}{opening}\n{claims_table(found, PAPERS)}\n\n{closing}{after}"
    return made


def stale() -> list[Path]:
    """Return the pictures that nothing makes any more."""
    return sorted(set(PAGES.glob("*/*.svg")) - set(pages()))


if __name__ == "__main__":
    for path in stale():
        path.unlink()
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
