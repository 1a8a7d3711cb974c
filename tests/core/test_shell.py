"""Splitting command lines: by example, against the real bash, and over random text."""

import shutil
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstack.shell import Command, Word, commands


def texts(text: str) -> list[list[str]]:
    """The words of each command, those of a substitution before the command around it."""
    return [command.texts for command in commands(text) if command.words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("   \n\t\n", []),
        ("npm test", [["npm", "test"]]),
        ("a && b || c; d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a\nb\r\nc", [["a"], ["b"], ["c"]]),
        ("a \\\n b", [["a", "b"]]),
        ("a \\\r\n b", [["a", "b"]]),
        ("echo 'a && b; c | d'", [["echo", "a && b; c | d"]]),
        ('echo "a && b" c', [["echo", "a && b", "c"]]),
        ("echo a\\ b\\;c", [["echo", "a b;c"]]),
        ('echo "a\\"b\\$c\\d"', [["echo", 'a"b$c\\d']]),
        ("echo $'a\\tb\\'c\\x41\\u00e9\\101'", [["echo", "a\tb'cAéA"]]),
        ('echo $"a b"', [["echo", "a b"]]),
        ("a#b #c && d", [["a#b"]]),
        ("a # it's \"fine\nb", [["a"], ["b"]]),
        ("cmd > out 2>&1 < in >>log 2>| x &> y arg", [["cmd", "arg"]]),
        ("echo 2 >&2 a", [["echo", "2", "a"]]),
        ("exec {fd}>file cmd", [["exec", "cmd"]]),
        ("(cd a; b) && { c; d; }", [["cd", "a"], ["b"], ["c"], ["d"]]),
        ("! a && time b", [["a"], ["time", "b"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while a; do b; done < f", [["a"], ["b"]]),
        ("for x in 1 2; do b $x; done", [["for", "x", "in", "1", "2"], ["b", "$x"]]),
        ("case $x in a|b) c;; (d) e ;& *) f;; esac; g", [["c"], ["e"], ["f"], ["g"]]),
        ("case a in\n a)\n  b\n  ;;\nesac\nc", [["b"], ["c"]]),
        ("case a in b) c; esac; d", [["c"], ["d"]]),
        ("f() { a; }; function g { b; }; h () { c; }", [["a"], ["b"], ["c"]]),
        ("x=(a b; c) d", [["d"]]),
        ("[[ a && ( b || c ) && d =~ (e|f) ]] && g", [["[[", "a", "b", "c", "d", "=~", "e", "f", "]]"], ["g"]]),
        ("((i = 1 << 2)); a", [["i = 1 << 2"], ["a"]]),
        ("echo $((1 << 2)) ${x:-y z} ${#a}", [["echo", "$()1 << 2", "${x:-y z}", "${#a}"]]),
        ("a $(b; c d) e", [["b"], ["c", "d"], ["a", "$()", "e"]]),
        ('a "$(b "c d")"', [["b", "c d"], ["a", "$()"]]),
        ("a `b c` d", [["b", "c"], ["a", "$()", "d"]]),
        ('a "x `b` y"', [["b"], ["a", "x $() y"]]),
        ('a "x \\`b\\` y"', [["a", "x `b` y"]]),
        ("a '$(b)' '`c`'", [["a", "$(b)", "`c`"]]),
        ("a ${x:-$(b)}", [["b"], ["a", "${x:-$()}"]]),
        ("diff <(a 1) >(b)", [["a", "1"], ["b"], ["diff", "<()", "<()"]]),
        ("cat <<EOF\na && b\nEOF\nc", [["cat"], ["c"]]),
        ("cat <<-'E O'\n\ta\n\tE O\nc", [["cat"], ["c"]]),
        ("cat <<A <<B; d\n1\nA\n2\nB\ne", [["cat"], ["d"], ["e"]]),
        (
            "git commit -m \"$(cat <<'EOF'\nit's `x` && y\nEOF\n)\" && push",
            [["cat"], ["git", "commit", "-m", "$()"], ["push"]],
        ),
        ("x=$(cat <<EOF\nbody\nEOF) ; y", [["cat"], ["y"]]),
        ("cat <<EOF\nnever ends", [["cat"]]),
        ("a 'never ends && b", [["a", "never ends && b"]]),
        ("a $(b", [["b"], ["a", "$()"]]),
        ("a ) b", [["a"], ["b"]]),
        ("& 'C:\\dir\\tool.exe' x", [["C:\\dir\\tool.exe", "x"]]),
        ("if ($LASTEXITCODE -ne 0) { exit 1 }", [["$LASTEXITCODE", "-ne", "0"], ["exit", "1", "}"]]),
    ],
)
def test_words(text: str, expected: list[list[str]]) -> None:
    assert texts(text) == expected


def only(text: str) -> Command:
    (found,) = commands(text)
    return found


def test_assignments_stand_apart_from_the_words() -> None:
    command = only("A=1 B+='x y' C[0]=2 cmd D=3")
    assert command.env == ["A=1", "B+=x y", "C[0]=2"]
    assert command.texts == ["cmd", "D=3"]
    assert only("A=1").env == ["A=1"]
    assert only("'A=1' b").texts == ["A=1", "b"], "a quoted name is no assignment"


def test_separators_round_each_command() -> None:
    found = commands("a && b || c\nd | e &")
    assert [(one.before, one.after) for one in found] == [
        ("", "&&"), ("&&", "||"), ("||", "\n"), ("\n", "|"), ("|", "&"),
    ]  # fmt: skip
    assert [one.before for one in commands("a &&\n\n  b")] == ["", "&&"]


def test_a_subshells_last_command_ends_as_the_subshell_does() -> None:
    assert [one.after for one in commands("(a; b) || c")] == [";", "||", ""]
    assert [one.after for one in commands("((a; b)) || (c)")][-1] == ""


def test_heredocs_feed_the_command_that_they_belong_to() -> None:
    first, second = commands("python - <<'PY' | cat\nprint(1)\nPY")
    assert (first.stdin, second.stdin) == ("print(1)\n", None)
    assert (first.fed, second.fed) == (True, True)
    assert only("python <<< 'print(1)'").stdin == "print(1)"
    assert only("python < file").stdin == ""
    assert only("python a.py").stdin is None
    assert not only("python a.py").fed
    dashed = only("bash <<-EOF\n\ta\n\tEOF\n")
    assert dashed.stdin == "\ta\n"


def test_a_substitutions_commands_are_marked() -> None:
    assert [(one.texts, one.inner) for one in commands("a $(b) `c` <(d); (e)")] == [
        (["b"], True), (["c"], True), (["d"], True), (["a", "$()", "$()", "<()"], False), (["e"], False),
    ]  # fmt: skip


def test_backticks_in_double_quotes_are_marked() -> None:
    found = commands('git commit -m "see `a; $(b)`" && `c`; x="`d`" e $(f "`g`") h')
    assert [one.texts[0] for one in found if one.ticked] == ["a", "b", "$()", "d", "g"]


def test_quoting_is_known() -> None:
    assert [word.quoted for word in only("a 'b' \"c\" d\\e f$'g' $h").words] == [False, True, True, True, True, False]


def test_keywords_are_kept_apart() -> None:
    assert commands("if ! a; then b; fi")[0].keywords == ["if", "!"]
    assert only("echo if then").keywords == []
    assert only("'if' a").texts == ["if", "a"]


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("/usr/bin/Python3", "python3"),
        ("'C:\\Program Files\\Git\\bin\\bash.exe'", "bash"),
        (".\\venv\\Scripts\\python.exe", "python"),
        ("C:\\tools\\npm.cmd", "npm"),
        ("\\pytest", "pytest"),
        ("./gradlew.bat", "gradlew"),
        ("my\\ tool", "my tool"),
    ],
)
def test_program_names(text: str, program: str) -> None:
    assert only(text).words[0].program == program


def test_word_shows_what_it_is() -> None:
    assert repr(Word("a")) == "Word('a')"
    assert repr(only("a 'b'")) == "Command('' [] [Word('a'), Word('b', quoted)] '')"


# --------------------------------------------------------------------------------------- against the real bash

_LETTERS = "abzAZ09_-./=:,+@%é"
_PIECES = st.one_of(
    st.text(_LETTERS, min_size=1, max_size=5),
    st.text(_LETTERS + ' "$`\\;&|()<>#~*?[]{}!\t', max_size=6).map(lambda text: f"'{text}'"),
    st.text(_LETTERS + " ';&|()<>#\t", max_size=6).map(lambda text: f'"{text}"'),
    st.sampled_from(['"\\""', '"\\$x"', '"\\\\"', '"\\`"', '"\\q"', "\\ ", "\\;", "\\'", '\\"', "\\\\", "\\$", "\\\n"]),
    st.sampled_from(["$'\\n'", "$'a\\'b'", "$'\\x41z'", "$'\\u00e9'", "$'\\101'", "$'\\q'", "$'\\e'", '$"a b"']),
)
_WORDS = st.lists(_PIECES, min_size=1, max_size=4).map("".join).filter(lambda text: text.strip("\\\n") != "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@settings(max_examples=40)
@given(st.lists(_WORDS, min_size=1, max_size=6))
def test_words_are_what_bash_makes_of_them(words: list[str]) -> None:
    line = "printf '%s\\0' " + " ".join(words)
    done = subprocess.run(["bash", "-fc", "--", line], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    expected = done.stdout.decode("utf-8").split("\0")[:-1]
    assert [command.texts for command in commands(line)] == [["printf", "%s\\0", *expected]]


# ----------------------------------------------------------------------------------------------- random structure

_HEREDOC = "cat <<'E' | tee f\nit's \"a && $(b)\nE\n:"
_NAMES = st.sampled_from(
    [_HEREDOC, "npm test", "a 'b; c' d", 'x "y && z"', "cmd -f --opt=v", "A=1 run \\\n  it", "./t.sh 2>&1 >o"]
)
_EXPECTED = {
    _HEREDOC: [["cat"], ["tee", "f"], [":"]],
    "npm test": [["npm", "test"]],
    "a 'b; c' d": [["a", "b; c", "d"]],
    'x "y && z"': [["x", "y && z"]],
    "cmd -f --opt=v": [["cmd", "-f", "--opt=v"]],
    "A=1 run \\\n  it": [["run", "it"]],
    "./t.sh 2>&1 >o": [["./t.sh"]],
}
#: A piece of shell text and the commands in it, in the order in which they end.
Piece = tuple[str, list[list[str]]]


def _sequence(parts: list[tuple[Piece, str]]) -> Piece:
    text, found = "", []
    for (piece, inside), separator in parts:
        text += piece + separator
        found += inside
    return text + "true", [*found, ["true"]]


def _pieces(children: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    separators = st.sampled_from([" && ", "||", "; ", " | ", "\n", " & ", " # it's \"a && b\n", ";\n\n"])
    return st.one_of(
        st.lists(st.tuples(children, separators), min_size=1, max_size=3).map(_sequence),
        children.map(lambda one: (f"( {one[0]} )", one[1])),
        children.map(lambda one: (f"{{ {one[0]}; }}", one[1])),
        children.map(lambda one: (f"if {one[0]}; then {one[0]}\nfi", one[1] + one[1])),
        children.map(lambda one: (f'echo "is $( {one[0]} ) so"', [*one[1], ["echo", "is $() so"]])),
        children.map(lambda one: (f"x=$( {one[0]} ) env", [*one[1], ["env"]])),
        children.map(lambda one: (f"case $x in 'a b'|c) {one[0]} ;; esac", one[1])),
    )


_TREES = st.recursive(_NAMES.map(lambda text: (text, _EXPECTED[text])), _pieces, max_leaves=6)


@given(_TREES)
def test_structure_of_random_programs(piece: Piece) -> None:
    """Whatever is nested in what, exactly the simple commands come out, in the order in which they end."""
    text, expected = piece
    assert texts(text) == expected


@given(st.text("ab \t\n\r\\'\"$`;&|()<>{}[]#=!~*?-1EOFcaseinsac", max_size=200))
def test_anything_can_be_split(text: str) -> None:
    for command in commands(text):
        assert command.words or command.env or command.stdin is not None
        assert command.after in ("", "&&", "||", ";", "|", "|&", "&", "\n", ")", "`")


@given(st.text(max_size=80))
def test_any_text_can_be_split(text: str) -> None:
    commands(text)


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a",
            "a ",
            "a\n",
            ";",
            "&&",
            "|",
            "(",
            ")",
            "$(",
            '"$(',
            "`",
            "`#",
            "${",
            '"',
            "'",
            "' ",
            "\\",
            "\\ ",
            "$((",
            "((",
        ),
        *(
            "[[ ",
            "[[;",
            "<<a\n",
            "<<a ",
            "<<<",
            "1>",
            "a=",
            "a=(",
            "f()",
            "case x in ",
            "case x in a) ",
            "$'\\x",
            "#",
            "# '\n",
        ),
    ],
)
def test_time_is_linear(unit: str) -> None:
    """A few hundred kilobytes of the worst text take no more than their share, however they are nested."""
    small, large = unit * (8_000 // len(unit)), unit * (120_000 // len(unit))
    started = time.process_time()
    commands(small)
    first = time.process_time() - started
    started = time.process_time()
    commands(large)
    assert time.process_time() - started < 75 * first + 0.5
