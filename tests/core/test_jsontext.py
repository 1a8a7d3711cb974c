"""JSON as text: what is read, what is refused, and that a change touches nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_documents import text_of, values

from gstack.jsontext import JsonError, Layout, Node, Patch, new_document, opened, parse, without_document

STRICT = json.JSONDecoder(parse_constant=lambda name: pytest.fail(name))


@given(text_of(values()))
def test_reads_what_json_reads(text):
    root = parse(text)
    assert root is not None
    assert root.plain() == json.loads(text.lstrip("\ufeff"))


@given(text_of(values()), st.data())
def test_accepts_and_refuses_as_strict_json_does(text, data):
    """Documents with one character changed, most of them broken ones."""
    text = text.lstrip("\ufeff")
    place = data.draw(st.integers(0, len(text)))
    text = (
        text[:place]
        + data.draw(st.sampled_from('{}[]",:0.-tx\\\x01#/ '))
        + text[place + data.draw(st.integers(0, 1)) :]
    )
    if not text.strip(" \t\r\n"):
        assert parse(text) is None
        return
    try:
        expected = STRICT.decode(text)
    except ValueError:
        with pytest.raises(JsonError) as caught:
            parse(text)
        assert 0 <= caught.value.offset <= len(text)
    else:
        assert parse(text).plain() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,}', "line 1, column 8: a comma behind the last entry"),
        ("[1,\n 2,\n]", "line 2, column 3: a comma behind the last entry"),
        ('{\n  // mine\n  "a": 1}', "line 2, column 3: a comment"),
        ('{"a": 1} /* x */', "line 1, column 10: a comment"),
        ('{"a": 1', "line 1, column 8: the file ends where a comma or } should be"),
        ('{"a" 1}', "line 1, column 6: a colon should be here"),
        ("{a: 1}", "line 1, column 2: a key in double quotes should be here"),
        ('{"a": "x\ny"}', "line 1, column 7: a text in quotes that doesn't end"),
        ('{"a": NaN}', "line 1, column 7: a value should be here"),
        ('{"a": 01}', "line 1, column 8: a comma or } should be here"),
        ("{} {}", "line 1, column 4: the end of the file should be here"),
        ("[" * 101 + "]" * 101, "nested deeper than 100 levels"),
    ],
)
def test_says_where_and_what(text, message):
    with pytest.raises(JsonError, match="line") as caught:
        parse(text)
    assert message in str(caught.value)


def test_never_quotes_the_file():
    with pytest.raises(JsonError) as caught:
        parse('{"key": "sk-secret" "x"}')
    assert "sk-secret" not in str(caught.value)


def test_an_integer_too_long_for_python_is_still_json():
    assert parse('{"a": ' + "9" * 5000 + "}") is not None


@pytest.mark.parametrize("text", ["", " \n\t", "\ufeff", "\ufeff\r\n"])
def test_white_space_is_no_document(text):
    assert parse(text) is None


def containers(node):
    if node.kind != "scalar":
        yield node
    for child in node.children:
        yield from containers(child.node)


@given(text_of(values()), st.data())
def test_adding_and_taking_away_gives_the_same_bytes(text, data):
    root = parse(text)
    boxes = list(containers(root))
    if not boxes:
        return
    place = data.draw(st.integers(0, len(boxes) - 1))
    count = data.draw(st.integers(1, 3))
    box, patch = boxes[place], Patch(text, root)
    for number in range(count):
        patch.add(box, f"new{number}" if box.kind == "object" else None, {"n": [number]})
    grown = patch.result()
    after = parse(grown)
    same = list(containers(after))[place]
    assert same.plain() == (
        {**box.plain(), **{f"new{number}": {"n": [number]} for number in range(count)}}
        if box.kind == "object"
        else [*box.plain(), *({"n": [number]} for number in range(count))]
    )
    assert opened(grown, same) == opened(text, box)
    back = Patch(grown, after)
    for index in range(len(box.children), len(same.children)):
        back.drop(same, index)
    assert back.result() == text
    assert not (box.children == [] and back.closes(same))


@given(text_of(values()), st.data())
def test_taking_children_out_leaves_the_others(text, data):
    root = parse(text)
    boxes = [box for box in containers(root) if box.kind == "array"]
    if not boxes:
        return
    box = data.draw(st.sampled_from(boxes))
    drops = data.draw(st.sets(st.integers(0, max(0, len(box.children) - 1)), max_size=len(box.children)))
    patch, kept = (
        Patch(text, root),
        [child.node.plain() for index, child in enumerate(box.children) if index not in drops],
    )
    for index in drops:
        patch.drop(box, index)
    changed = parse(patch.result())
    place = [id(found) for found in containers(root)].index(id(box))
    assert list(containers(changed))[place].plain() == kept


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "k": [\n    true\n  ]\n}\n'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"k": [\n\t\ttrue\n\t]\n}'),
        ('{\r\n    "a": 1\r\n}', '{\r\n    "a": 1,\r\n    "k": [\r\n        true\r\n    ]\r\n}'),
        ('{"a":1}', '{"a":1,"k": [ true ]}'),
        ('{"a":1, "b":2}', '{"a":1, "b":2, "k": [ true ]}'),
        ('{\n  "a": 1\n  , "b": 2\n}', '{\n  "a": 1\n  , "b": 2,\n  "k": [\n    true\n  ]\n}'),
        ("{}\n", '{"k": [\n  true\n]}\n'),
        ("{\n}\n", '{"k": [\n  true\n]\n}\n'),
    ],
)
def test_a_new_member_looks_like_its_neighbours(before, after):
    root = parse(before)
    patch = Patch(before, root)
    patch.add(root, "k", [True])
    assert patch.result() == after


def test_put_replaces_only_the_value_and_take_only_the_member():
    text = '{"a" :1.0 ,"b":2, "a": 3,\n"c": true}'
    root = parse(text)
    patch = Patch(text, root)
    assert patch.put(root, "a", "é")
    assert not patch.put(root, "c", True)
    assert patch.put(root, "c", 1)
    assert patch.take(root, "b")
    assert not patch.take(root, "nope")
    assert patch.result() == '{"a" :1.0 , "a": "é",\n"c": 1}'


def test_a_container_goes_only_when_it_was_opened_for_what_is_taken_away():
    text = '{"mine": [ 1 ], "yours": [1], "hidden": [ 1 ], "hidden": [ 1 ]}'
    root = parse(text)
    patch = Patch(text, root)
    for child in root.children:
        patch.drop(child.node, 0)
    patch.drop_closed(root)
    assert patch.result() == '{"yours": [], "hidden": [  ], "hidden": [  ]}'


@pytest.mark.parametrize("blank", [None, "", "\n", " \n\n", "\ufeff", "\r\n"])
def test_a_document_in_an_empty_file_goes_without_a_trace(blank):
    text = new_document({"a": {"b": [1]}}, blank)
    root = parse(text)
    assert root.plain() == {"a": {"b": [1]}}
    assert without_document(text, root) == blank


def test_layout_of_what_shows_nothing():
    assert Layout.of("{}", parse("{}")) == Layout("\n", "  ", True)
    assert Layout.of('{\n"a": 1\n}', parse('{\n"a": 1\n}')).unit == "  "
    assert isinstance(parse("[]"), Node)
