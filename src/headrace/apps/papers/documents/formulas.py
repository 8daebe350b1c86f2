"""Formulas and raised or lowered signs as plain text: 10², x/y, √(a + b)."""

from __future__ import annotations

import re
from collections.abc import Callable

from headrace.apps.papers.documents.xml_tree import Node

_SUPERSCRIPTS = str.maketrans("0123456789+-−=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ")
_SUBSCRIPTS = str.maketrans("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")
_ORDINALS = ("st", "nd", "rd", "th")
#: Signs that stand beside letters without a space.
_TEX_WORDS = {
    "times": "×", "cdot": "·", "pm": "±", "mp": "∓", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "neq": "≠",
    "ne": "≠", "approx": "≈", "sim": "∼", "infty": "∞", "partial": "∂", "nabla": "∇", "sum": "∑", "prod": "∏",
    "int": "∫", "sqrt": "√", "to": "→", "rightarrow": "→", "leftarrow": "←", "in": "∈", "degree": "°", "circ": "°",
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ",
    "sigma": "σ", "tau": "τ", "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ",
    "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "ldots": "…",
}  # fmt: skip
#: In braces, or one sign. What is already shown behind ^ or _ stays as it is when it is seen again.
_GROUP = r"(?:\{([^{}]*)\}|([^\s{}\\(]))"

#: What says how a formula looks, and nothing of what it says.
_TEX_LAYOUT = re.compile(
    r"\$+|\\[\[\]()]|\\(?:left|right|displaystyle|textstyle|nonumber)\b|\\(?:begin|end)\{\w+\*?\}"
    r"|\\(?:text|textrm|mathrm|mathit|mathbf|mathsf|operatorname|hbox|mbox|overline|bar|hat)\s*(?=\{)"
)
_MAX_TEX = 20_000


def raised(text: str) -> str:
    """A text as a superscript: with Unicode's signs, else behind a ^.

    >>> raised("2"), raised("-3"), raised("a+b"), raised("th")
    ('²', '⁻³', '^(a+b)', 'th')
    """
    return _shifted(text, _SUPERSCRIPTS, "^")


def lowered(text: str) -> str:
    """A text as a subscript: with Unicode's signs, else behind a _.

    >>> lowered("2"), lowered("max")
    ('₂', '_max')
    """
    return _shifted(text, _SUBSCRIPTS, "_")


def _shifted(text: str, signs: dict[int, int], mark: str) -> str:
    bare = text.strip()
    if not bare or bare in _ORDINALS or bare in "*†‡§¶′″°®™":
        return bare
    if all(ord(char) in signs for char in bare):
        return bare.translate(signs)
    return f"{mark}{bare}" if re.fullmatch(r"[-−+]?[\w.]+", bare) else f"{mark}({bare})"


def mathml_text(node: Node) -> str:
    """The formula of a MathML element on one line.

    >>> from headrace.apps.papers.documents.xml_tree import parse_xml
    >>> mathml_text(parse_xml(b"<math><mi>x</mi><mo>=</mo><msup><mi>y</mi><mn>2</mn></msup></math>"))
    'x = y²'
    """
    return " ".join(_mathml(node).split())


def _mathml(node: Node) -> str:
    if node.tag in ("annotation", "annotation-xml", "mphantom"):
        return ""
    if node.tag == "mo":
        sign = _own_text(node)
        return f" {sign} " if sign in "=≠<>≤≥≈+−-±×·→∼∈" else sign
    if node.tag in ("mi", "mn", "mtext", "ms"):
        return _own_text(node)
    if node.tag == "mspace":
        return " "
    parts = [_mathml(part) for part in node.nodes()]
    shape = _SHAPES.get(node.tag)
    return shape(parts) if shape is not None and len(parts) >= 2 else _wrapped(node, parts)


def _wrapped(node: Node, parts: list[str]) -> str:
    joiner = {"mtr": " ", "mtable": "; ", "mfenced": ", "}.get(node.tag, "")
    text = joiner.join(parts)
    if node.tag == "msqrt":
        return f"√({text})"
    if node.tag == "mfenced":
        return f"{node.attributes.get('open', '(')}{text}{node.attributes.get('close', ')')}"
    return text


def _own_text(node: Node) -> str:
    return " ".join("".join(part for part in node.parts if isinstance(part, str)).split())


def _bracketed(text: str) -> str:
    text = text.strip()
    return text if re.fullmatch(r"[\w.⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉^]*|\([^()]*\)", text) else f"({text})"


_SHAPES: dict[str, Callable[[list[str]], str]] = {
    "mfrac": lambda parts: f"{_bracketed(parts[0])}/{_bracketed(parts[1])}",
    "msup": lambda parts: parts[0] + raised(parts[1]),
    "msub": lambda parts: parts[0] + lowered(parts[1]),
    "msubsup": lambda parts: parts[0] + lowered(parts[1]) + raised("".join(parts[2:])),
    "munder": lambda parts: parts[0] + lowered(parts[1]),
    "mover": lambda parts: parts[0],
    "munderover": lambda parts: parts[0] + lowered(parts[1]) + raised("".join(parts[2:])),
    "mroot": lambda parts: f"{_bracketed(parts[0])}^(1/{parts[1].strip()})",
}


def tex_text(tex: str) -> str:
    r"""The formula of a TeX document or snippet, as far as plain text can show it.

    >>> tex_text(r"\documentclass{minimal}\begin{document}$$\frac{1}{n} \le 10^{-3} \alpha$$\end{document}")
    '1/n ≤ 10⁻³ α'
    """
    tex = tex.partition(r"\begin{document}")[2].partition(r"\end{document}")[0] or tex
    tex = _TEX_LAYOUT.sub("", tex[:_MAX_TEX])
    tex = re.sub(r"\\([A-Za-z]+)", lambda match: _TEX_WORDS.get(match[1], match[0]), tex)
    tex = re.sub(r"\\[,;:! ]|~|\\\\|&", " ", tex)
    for _ in range(8):  # from the innermost braces outwards
        before = tex
        tex = re.sub(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", _fraction, tex)
        tex = re.sub(rf"\^{_GROUP}", lambda match: raised(match[1] or match[2] or ""), tex)
        tex = re.sub(rf"_{_GROUP}", lambda match: lowered(match[1] or match[2] or ""), tex)
        tex = re.sub(r"√\s*\{([^{}]*)\}", r"√(\1)", tex)
        tex = re.sub(r"(?<![\^_}])(?<!frac)\{([^{}]*)\}(?!\s*\{)", r"\1", tex)
        if tex == before:
            break
    return " ".join(re.sub(r"\\(?=[%#&_{}])", "", tex).split())


def _fraction(match: re.Match[str]) -> str:
    return f"{_bracketed(match[1])}/{_bracketed(match[2])}"
