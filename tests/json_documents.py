"""Random JSON documents as text, in every layout that a settings file may have."""

from hypothesis import strategies as st

#: Scalars as they may be spelled; ``json`` would write some of them otherwise.
SCALARS = st.sampled_from(
    ["1", "1.0", "1e5", "-0", "10E+2", "true", "null", '"x"', '"\\u00e9"', '"é"', '"\\/"', '"😀"', '"\\ud83d"', '""']
)
#: Marks that a test may replace in the text, see :func:`text_of`.
ELEMENT_MARK, MEMBER_MARK = '"@element@"', '"@member@"'

_GAPS = st.sampled_from(["", "", " ", "\n", "\r\n\t", "\n    ", "  \n"])


def array(*values):
    return ("array", list(values))


def obj(*members):
    return ("object", list(members))


def keys(*names):
    return st.sampled_from([f'"{name}"' for name in names])


def values(leaves=SCALARS):
    """Any JSON value, as a tree that keeps doubled keys and spellings."""
    names = keys("a", "b", "hooks", "Stop", "\\u0061", "matcher", "command")
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda found: ("array", found)),
            st.lists(st.tuples(names, inner), max_size=3).map(lambda found: ("object", found)),
        ),
        max_leaves=6,
    )


@st.composite
def text_of(draw, trees):
    """The text of a tree: pretty, compact or wild, with any line end, with or without a byte-order mark."""
    tree = draw(trees)
    layout = draw(st.sampled_from(["  ", "    ", "\t", " ", "compact", "spaced", "wild"]))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    text = _wild(tree, draw) if layout == "wild" else _laid_out(tree, layout, newline, "")
    return draw(st.sampled_from(["", "", "\ufeff", "\n"])) + text + draw(st.sampled_from(["", newline, " \n\n"]))


def _laid_out(tree, layout, newline, base):
    if isinstance(tree, str):
        return tree
    kind, children = tree
    opening, closing = "[]" if kind == "array" else "{}"
    inner = base + layout
    texts = [_child(child, kind, lambda value: _laid_out(value, layout, newline, inner), layout) for child in children]
    if layout == "compact":
        return opening + ",".join(texts) + closing
    if layout == "spaced":
        return opening + " " + ", ".join(texts) + " " + closing
    if not texts:
        return opening + closing
    between = newline + inner
    return opening + between + ("," + between).join(texts) + newline + base + closing


def _child(child, kind, render, layout):
    if kind == "array":
        return render(child)
    return child[0] + (":" if layout == "compact" else ": ") + render(child[1])


def _wild(tree, draw):
    if isinstance(tree, str):
        return tree
    kind, children = tree
    opening, closing = "[]" if kind == "array" else "{}"
    parts = [opening]
    for place, child in enumerate(children):
        key, value = child if kind == "object" else (None, child)
        parts += ["," if place else "", draw(_GAPS)]
        parts += [key, draw(_GAPS), ":", draw(_GAPS)] if key else []
        parts += [_wild(value, draw), draw(_GAPS)]
    return "".join([*parts, "" if children else draw(_GAPS), closing])
