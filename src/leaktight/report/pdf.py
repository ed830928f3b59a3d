"""The sheet as a PDF of one page, for someone who decides."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from fpdf import FPDF

from leaktight.core.display import count
from leaktight.findings.kind import Gauge
from leaktight.findings.summary import AuditSummary
from leaktight.report.earlier import Tell, write_beside
from leaktight.report.render import page_of
from leaktight.report.sheet import Sheet, VerdictGroup, VerdictLine
from leaktight.running.store import Store

_SIZES = (10.0, 9.0, 8.0, 7.0)
"""Letters in points, tried one after the other until everything fits."""
_LINES = (40, 24, 16, 10, 6, 3)
"""How many defences of each kind of leak are shown, if even small letters do not help; the report holds all."""
_INK, _SOFT, _TRACK = (29, 39, 51), (91, 103, 117), (226, 229, 233)
_BAD, _MID, _GOOD = (179, 38, 30), (138, 90, 0), (31, 111, 74)
_TONES = {"leaks": _BAD, "refuted": _BAD, "reduced": _MID, "good": _GOOD}
"""The colours of verdicts; what is not here is grey."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 16.0, 194.0, 14.0, 283.0
_COLUMNS = (16.0, 68.0, 118.0, 150.0, 176.0)
"""Where the columns of a table begin: defence, leak left, strongest attack, price, verdict."""
_BAR = 30.0
_SPELLING = str.maketrans({"\u2013": "-", "\u2014": "-", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})
# The same audit makes the same file, whenever it is drawn.
_DATE = datetime(2000, 1, 1, tzinfo=UTC)


def write_pdf(
    folder: Path,
    out: Path | None = None,
    redact: bool = False,
    summary: AuditSummary | None = None,
    force: bool = False,
    tell: Tell | None = None,
) -> Path:
    """Write the summary of an audit's folder as a PDF of one page and return where it is.

    There is no picture, no seed and no value of a single example on it.

    Args:
        folder: where the audit is stored.
        out: the file to write; by default `summary.pdf`, or `summary-redacted.pdf`, in that folder.
        redact: whether to leave out numbers that rest on a single example.
        summary: that of all records, if it is known already; a redacted one has a summary of its own.
        force: whether an earlier file is replaced.
        tell: is told the name of an earlier file that was kept.
    """
    path = out or folder / ("summary-redacted.pdf" if redact else "summary.pdf")
    with Store.read(folder) as store:
        page = page_of(store.records(), store.plan(), store.versions(), lambda key: None, redact, summary)
    return write_beside(path, draw_sheet(Sheet.of(page)), force, tell)


def draw_sheet(sheet: Sheet) -> bytes:
    """Return a sheet as a PDF of one page: what does not fit is counted, never cut without a word."""
    tries = [(size, _LINES[0]) for size in _SIZES] + [(_SIZES[-1], most) for most in _LINES[1:]]
    papers = (_Paper(sheet, size, most) for size, most in tries)
    paper = next((one for one in papers if one.fits), None) or _Paper(sheet, *tries[-1])
    return bytes(paper.pdf.output())


class _Paper:
    """One page of A4 at one size of letters.

    Args:
        sheet: what it shows.
        size: letters in points.
        most: how many defences of each kind of leak are shown.
    """

    def __init__(self, sheet: Sheet, size: float, most: int) -> None:
        self.size, self.most = size, most
        self.pdf = FPDF(format="A4")
        self.pdf.set_creation_date(_DATE)
        self.pdf.set_title(_latin(f"{sheet.title}: summary"))
        self.pdf.set_lang("en")
        self.pdf.set_auto_page_break(False)
        self.pdf.set_margins(_LEFT, _TOP, 210 - _RIGHT)
        self.pdf.add_page()
        self._draw(sheet)

    @property
    def fits(self) -> bool:
        """Whether nothing runs out of the page."""
        return self.pdf.get_y() <= _BOTTOM

    def _draw(self, sheet: Sheet) -> None:
        self._text("LEAKTIGHT", 0.8, _SOFT, "B")
        self._text(sheet.title, 1.6, _INK, "B")
        self._gap(0.4)
        self._text(sheet.headline, 1.2, _INK, "B")
        self._gap(0.3)
        self._text(sheet.scope, 0.9, _SOFT)
        for group in sheet.groups:
            self._group(group)
        for number, item in enumerate(sheet.advice):
            if not number:
                self._heading("Which defence, at what price")
            self._text(item.question, 0.95, _INK, "B")
            self._text(item.sentence, 0.95, _INK)
        if sheet.doubts:
            self._heading("What to doubt first")
            more = [f"{sheet.more_doubts} more in the report."] if sheet.more_doubts else []
            for sentence in (*sheet.doubts, *more):
                self._text(f"- {sentence}", 0.95, _INK)
        self._heading("What the words mean")
        words = "; ".join(f"{word}: {meaning}" for word, meaning in sheet.words.items())
        self._text(f"{words}. No attack that fails shows that none can succeed.", 0.85, _SOFT)

    def _group(self, group: VerdictGroup) -> None:
        self._heading(f"{group.heading} ({group.measure})")
        price = f"price ({group.unit})" if group.unit else ""
        self._row(("defence", "leak left", "strongest attack", price, "verdict"), _SOFT)
        for line in group.lines[: self.most]:
            self._line(line, line.price if group.unit else "")
        left = len(group.lines) - self.most
        if left > 0:
            self._text(f"{count(left, 'more setting')} in the report.", 0.9, _SOFT)

    def _line(self, line: VerdictLine, price: str) -> None:
        top = self.pdf.get_y()
        tone = _TONES.get(line.tone, _SOFT)
        leak = f"{line.leak} ({line.chance})" if line.chance else line.leak
        start = top + self._height(0.9) if line.gauge is not None else top
        word = f"{line.word}, useless model" if line.useless and line.word != "useless" else line.word
        bottom = self._row((line.name, leak, line.attack, price, word), _INK, tone, start)
        if line.gauge is not None:
            self._bar(line.gauge, tone, top + 0.3 * self._height(0.9))
        self.pdf.set_y(bottom + 0.6)
        self.pdf.set_draw_color(*_TRACK)
        self.pdf.line(_LEFT, bottom + 0.3, _RIGHT, bottom + 0.3)

    def _bar(self, gauge: Gauge, tone: tuple[int, int, int], top: float) -> None:
        left, high = _COLUMNS[1] + 1, 0.5 * self._height(0.9)
        self._box(left, top, _BAR, high, _TRACK)
        self._box(left, top, _BAR * gauge.value, high, tone)
        if gauge.low is not None and gauge.high is not None:
            self._box(left + _BAR * gauge.low, top + 0.42 * high, _BAR * (gauge.high - gauge.low), 0.16 * high, _INK)
        if gauge.chance is not None:
            self._box(left + _BAR * gauge.chance - 0.15, top - 0.25 * high, 0.3, 1.5 * high, _INK)

    def _box(self, x: float, y: float, width: float, height: float, colour: tuple[int, int, int]) -> None:
        self.pdf.set_fill_color(*colour)
        self.pdf.rect(x, y, max(width, 0.1), height, style="F")

    def _row(
        self,
        cells: tuple[str, ...],
        colour: tuple[int, int, int],
        last: tuple[int, int, int] | None = None,
        second: float | None = None,
    ) -> float:
        """Write the cells of a table side by side and return where the longest ends."""
        top = self.pdf.get_y()
        bottom = top
        for number, text in enumerate(cells):
            left = _COLUMNS[number]
            right = _COLUMNS[number + 1] - 2 if number + 1 < len(_COLUMNS) else _RIGHT
            is_last = last is not None and number == len(cells) - 1
            self._letters(0.9, last if is_last and last is not None else colour, "B" if is_last or not number else "")
            self.pdf.set_xy(left, second if number == 1 and second is not None else top)
            self.pdf.multi_cell(right - left, self._height(0.9), _latin(text), align="L", new_x="LMARGIN", new_y="NEXT")
            bottom = max(bottom, self.pdf.get_y())
        self.pdf.set_y(bottom)
        return bottom

    def _heading(self, text: str) -> None:
        self._gap(0.7)
        self._text(text, 1.05, _INK, "B")
        self._gap(0.1)

    def _text(self, text: str, times: float, colour: tuple[int, int, int], style: str = "") -> None:
        self._letters(times, colour, style)
        self.pdf.set_x(_LEFT)
        self.pdf.multi_cell(_RIGHT - _LEFT, self._height(times), _latin(text), align="L", new_x="LMARGIN", new_y="NEXT")

    def _letters(self, times: float, colour: tuple[int, int, int], style: str) -> None:
        self.pdf.set_font("helvetica", style, self.size * times)
        self.pdf.set_text_color(*colour)

    def _height(self, times: float) -> float:
        # A point is 0.353 mm, and lines are a quarter higher than letters.
        return self.size * times * 0.353 * 1.25

    def _gap(self, lines: float) -> None:
        self.pdf.set_y(self.pdf.get_y() + lines * self._height(1.0))


def _latin(text: str) -> str:
    """Return a text in the letters that every PDF reader has; others become question marks.

    Example:
        >>> _latin("3\u201311 dB, \u0434\u0430")
        '3-11 dB, ??'
    """
    return text.translate(_SPELLING).replace("`", "").encode("latin-1", "replace").decode("latin-1")
