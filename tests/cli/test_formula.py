"""LaTeX as plain text: each thing that docstrings use, and nothing left of it."""

# ruff: noqa: RUF001
from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import leaktight
from leaktight.cli.formula import formula, plain_text

SOURCES = sorted(Path(leaktight.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\sigma", "σ"),
        (r"\lambda_1^{(k)} \ge 0", "λ₁^(k) ≥ 0"),
        (r"\lVert B^{-1} E_B \rVert < 1", "‖B⁻¹ E_B‖ < 1"),
        (r"\left\| \frac{J}{range} \right\|_p", "‖J/range‖_p"),
        (r"\mathrm{KL}(\tilde P_1 \| \tilde P_0)", "KL(P̃₁ ‖ P̃₀)"),
        (r"\hat x = T(x), \qquad \bar g", "x̂ = T(x), ḡ"),
        (r"g_i \in \mathbb{R}^d", "g_i ∈ ℝ^d"),
        (r"\sum_{k=1}^K x_k", "∑_(k=1..K) x_k"),
        (r"\sum_{i \in S} g_i", "∑_(i ∈ S) g_i"),
        (r"\int_0^1 f \, di", "∫₀¹ f di"),
        (r"\tfrac12 - \tfrac14 \sqrt{\mathrm{sumKL}}", "½ - ¼ √sumKL"),
        (r"\frac gA + \frac gB", "g/A + g/B"),
        (r"\frac{(a - b)^2}{a b}", "(a - b)² / (a b)"),
        (r"\frac{a + b}{c}", "(a + b) / c"),
        (r"\frac{1}{2b} e^{-|z| / b}", "1 / (2b) · exp(-|z| / b)"),
        (r"\frac{1}{n} \sum_i x_i", "1/n · ∑_i x_i"),
        (r"1 - e^{2}", "1 - e²"),
        (r"a_e^T", "a_eᵀ"),
        (r"\sqrt d, \sqrt 2 \, \Phi^{-1}(a), \sqrt{k / 2}", "√d, √2 Φ⁻¹(a), √(k / 2)"),
        (r"\arg\max_c \max_p \langle \phi(x), \psi_c^p \rangle", "arg max_c max_p ⟨φ(x), ψ_c^p⟩"),
        (r"g \min\bigl(1, \tfrac{C}{\lVert g \rVert}\bigr)", "g min(1, C/‖g‖)"),
        (r"\nabla_\theta \, \ell(f_\theta(x), y)", "∇_θ ℓ(f_θ(x), y)"),
        (r"\Delta g \Delta g^T", "Δg Δgᵀ"),
        (r"-\log p(c \mid x)", "-log p(c | x)"),
        (r"\log_{10}(ratio + 1)", "log₁₀(ratio + 1)"),
        (r"\Pr[X \ge j] \pm 1.96 s", "Pr[X ≥ j] ± 1.96 s"),
        (r"v_i \text{ if } i \in \mathrm{top}_{\lceil \theta n \rceil}(|w|)", "v_i if i ∈ top_(⌈θ n⌉)(|w|)"),
        (r"\overline{|x|}", "mean(|x|)"),
        (r"x^*, d'", "x*, d'"),
        (r"\phi_{\theta_t}(x)", "φ_(θ_t)(x)"),
        (r"\{ 1, \ldots, B \}", "{1, ..., B}"),
        (r"10^{-5}", "10⁻⁵"),
        (r"\unheard of", "unheard of"),
        ("", ""),
    ],
)
def test_latex_becomes_plain_text(latex: str, text: str) -> None:
    assert formula(latex) == text


@pytest.mark.parametrize("latex", [r"\frac", r"\frac{a", r"x_", r"\text{a", r"\hat", r"}", "\\"])
def test_a_formula_that_ends_too_early_is_shown_all_the_same(latex: str) -> None:
    formula(latex)


def test_a_text_keeps_everything_but_its_formulas() -> None:
    assert plain_text("No `formula` (here)\n at all.") == "No `formula` (here)\n at all."
    assert plain_text("With \\(a\n\\le b\\) and \\(c\\).") == "With a ≤ b and c."


@pytest.mark.parametrize("path", [path for path in SOURCES if r"\(" in path.read_text()], ids=lambda path: path.stem)
def test_nothing_is_left_of_the_latex_in_our_docstrings(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            inline, blocks = r"\\\((.*?)\\\)", r"\.\. math:: (.*?)(?:\n\n|\Z)"
            for latex in re.findall(inline, text, re.DOTALL) + re.findall(blocks, text, re.DOTALL):
                assert not re.search(r"[\\\0\1]|frac|Vert|math|left|right|begin|_\{|\^\{", formula(latex)), latex
