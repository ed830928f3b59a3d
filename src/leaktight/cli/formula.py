"""Formulas: the LaTeX of docstrings as plain text that a terminal can show."""

from __future__ import annotations

import re
import unicodedata

# ruff: noqa: RUF001
_TABLE = """
alpha α  beta β  gamma γ  delta δ  epsilon ε  varepsilon ε  zeta ζ  eta η  theta θ  kappa κ  lambda λ  mu μ
nu ν  xi ξ  pi π  rho ρ  sigma σ  tau τ  phi φ  varphi ϕ  chi χ  psi ψ  omega ω  Gamma Γ  Theta Θ  Lambda Λ
Sigma Σ  Phi Φ  Psi Ψ  Omega Ω  in ∈  notin ∉  le ≤  ge ≥  neq ≠  sim ~  approx ≈  propto ∝  perp ⊥  cdot ·
times ×  circ ∘  pm ±  mp ∓  to →  leftarrow ←  langle ⟨  rangle ⟩  lceil ⌈  rceil ⌉  lfloor ⌊  rfloor ⌋  | ‖
{ {  } }  mid |  ldots ...  dots ...  ell ℓ  infty ∞  emptyset ∅
"""
_SIZES = ("left", "right", "big", "Big", "bigl", "bigr", "Bigl", "Bigr")
_SPACES = (",", ";", " ", "quad", "qquad")
_SYMBOLS: dict[str, str] = dict(re.findall(r"(\S+) (\S+)", _TABLE))
_SYMBOLS |= dict.fromkeys(_SIZES, "") | dict.fromkeys(_SPACES, " ")
_PREFIXES = {"nabla": "∇", "partial": "∂", "Delta": "Δ", "lVert": "‖"}
"""Symbols that stand before something, without a space."""
_LARGE = {"sum": "∑", "prod": "∏", "int": "∫"}
_ACCENTS = {"hat": "\N{COMBINING CIRCUMFLEX ACCENT}", "tilde": "\N{COMBINING TILDE}", "bar": "\N{COMBINING MACRON}"}
_FONTS = {"text", "mathrm", "operatorname", "mathbf"}
_SMALL = {
    "_": str.maketrans("0123456789+-", "₀₁₂₃₄₅₆₇₈₉₊₋"),
    "^": str.maketrans("0123456789+-T", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀ"),
}
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|.", re.DOTALL)
_CLOSE, _APART = "\0", "\1"
"""What stands before takes no space, or needs one if it is a letter or a digit."""
_GROUP = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|⟨[^⟨⟩]*⟩|‖[^‖]*‖|\|[^|]*\|")
_FACTOR = re.compile(
    r"[A-Za-z0-9(\[|]|\\(?:left|[bB]igl?)\s*[(\[]"
    r"|\\(?:lVert|\||frac|tfrac|sum|log|exp|nabla|Delta|hat|bar|tilde|psi|phi|theta)"
)
"""What a fraction is multiplied by if it comes next."""


def plain_text(text: str, space: str = " ") -> str:
    r"""Return a text with each formula between `\(` and `\)` as plain text.

    Args:
        text: the text.
        space: what stands between the words of a formula, such as a space that does not break.

    Example:
        >>> plain_text(r"The noise has \(\sigma^2 \le \frac{1}{n} \sum_i \lVert g_i \rVert^2\).")
        'The noise has σ² ≤ 1/n · ∑_i ‖g_i‖².'
    """
    return re.sub(r"\\\((.*?)\\\)", lambda found: formula(found[1]).replace(" ", space), text, flags=re.DOTALL)


def formula(latex: str) -> str:
    r"""Return a formula as one line of plain text.

    It knows the LaTeX that docstrings use. A command that it does not know is shown by its name.

    Example:
        >>> formula(r"\tilde g = g + \sigma z, \qquad z \sim N(0, I)")
        'g̃ = g + σ z, z ~ N(0, I)'
        >>> formula(r"\frac{a - b}{2 c} e^{-|z| / b}")
        '(a - b) / (2 c) · exp(-|z| / b)'
    """
    return _Parser(latex.replace(r"\left\|", r"\lVert ").replace(r"\right\|", r"\rVert{}")).run()


class _Parser:
    """Reads the tokens of a formula one by one."""

    def __init__(self, latex: str) -> None:
        self.tokens = _TOKEN.findall(latex)
        self.place = 0

    def run(self, end: str = "") -> str:
        """Return everything up to a closing brace, or up to the end."""
        text = ""
        while self.place < len(self.tokens) and self.peek() != end:
            text += self.part()
        self.place += 1
        text = re.sub(_APART, "", re.sub(rf"(?<=\w){_APART}", " ", text))
        text = re.sub(rf"\s*{_CLOSE}", "", re.sub(r"\s+", " ", text)).strip()
        text = re.sub(r"(?<=[(\[{⟨⌈⌊]) | (?=[)\]}⟩⌉⌋,;:]|\.$)", "", text)
        return unicodedata.normalize("NFC", text)

    def part(self) -> str:
        """Return the next group, index, command or character."""
        first = self.next()
        if first == "{":
            return self.run("}")
        if first in _SMALL:
            return _script(first, self.argument())
        if first == "e" and self.peek() == "^":
            self.next()
            power = self.argument()
            return f"e{_script('^', power)}" if power.lstrip("-").isdigit() else f"exp({power})"
        return self.command(first[1:]) if first.startswith("\\") else first

    def command(self, name: str) -> str:
        """Return what a command shows."""
        if name in ("frac", "tfrac"):
            return self.fraction()
        if name in _LARGE:
            return self.large(_LARGE[name])
        if name in _ACCENTS:
            return self.argument() + _ACCENTS[name]
        if name in _PREFIXES:
            self.skip()
            return _PREFIXES[name]
        if name in _FONTS:
            return self.verbatim()
        match name:
            case "sqrt":
                inner = self.argument()
                return f"√{inner}" if re.fullmatch(r"\w+", inner) else f"√({inner})"
            case "overline":
                return f"mean({self.argument()})"
            case "mathbb":
                return "ℝ" if (letter := self.argument()) == "R" else letter
            case "rVert":
                return f"{_CLOSE}‖"
        if name in _SYMBOLS:
            return _SYMBOLS[name]
        is_apart = re.match(r"\w|\\[a-z]", self.peek()) and self.peek() != "_" and self.peek()[1:] not in _SIZES
        return f"{_APART}{name}{' ' if is_apart else ''}"

    def fraction(self) -> str:
        """Return a fraction, with a point before what it is multiplied by."""
        above, below = self.argument(), self.argument()
        is_short = _is_atom(above) and _is_atom(below)
        above = f"({above})" if re.search(r" [-+±/] ", _outside_groups(above)) else above
        below = below if _is_atom(below) else f"({below})"
        text = f"{above}/{below}" if is_short else f"{above} / {below}"
        text = {"1/2": "½", "1/4": "¼"}.get(text, text)
        if not _FACTOR.match("".join(self.tokens[self.place :]).lstrip()):
            return text
        self.skip()
        return f"{text} " if text in "½¼" else f"{text} · "

    def large(self, symbol: str) -> str:
        """Return a sum, a product or an integral with its range."""
        bounds = {}
        while self.peek() in _SMALL:
            mark = self.next()
            bounds[mark] = self.argument()
        if "=" in bounds.get("_", "") and "^" in bounds:
            return f"{symbol}_({bounds['_']}..{bounds['^']})"
        return symbol + "".join(_script(mark, text) for mark, text in bounds.items())

    def argument(self) -> str:
        """Return the argument of a command: a group, a command or one character, as TeX takes it."""
        self.skip()
        return self.part().strip() if self.peek()[:1] in ("{", "\\") else self.next()

    def verbatim(self) -> str:
        """Return the text of a group with its spaces."""
        self.next()
        text = ""
        while self.peek() not in ("}", ""):
            text += self.next()
        self.next()
        return text

    def next(self) -> str:
        """Return the next token and move behind it."""
        self.place += 1
        return self.tokens[self.place - 1] if self.place <= len(self.tokens) else ""

    def peek(self) -> str:
        """Return the next token; nothing at the end."""
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def skip(self) -> None:
        """Move behind spaces."""
        while self.peek().isspace() or self.peek() == "\\,":
            self.place += 1


def _script(mark: str, text: str) -> str:
    """Return an index or a power: small digits where these exist, else behind a mark."""
    if re.fullmatch(r"[-+]?\d+|T" if mark == "^" else r"[-+]?\d+", text):
        return text.translate(_SMALL[mark])
    if mark == "^" and text in ("*", "'"):
        return text
    return f"{mark}{text}" if re.fullmatch(r"[^\W_]+|\([^()]*\)|.", text) else f"{mark}({text})"


def _outside_groups(text: str) -> str:
    """Return a formula with a box in the place of each bracket, norm and amount."""
    while (shorter := _GROUP.sub("□", text)) != text:
        text = shorter
    return text


def _is_atom(text: str) -> bool:
    """Return whether a formula needs no brackets where it is divided or divides."""
    return bool(re.fullmatch(r"(?!\d+[^\W\d]|.*□\S*□)[^\s/+]+", _outside_groups(text)))
