"""What the gate says, word for word (gate G3)."""

import pytest

from gstack.api import Decision
from gstack.gate.texts import deny_text, exception_page, quote, warn_text


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (
            Decision("block", "Too old", policy_name="Old. stuff", skill_name="a/b", policy_id="p 1"),
            "policy: Old. stuff. Too old. Need it? Ask for an exception: https://x/y?policy=p%201&skill=a%2Fb",
        ),
        (
            Decision("block", "", policy_name="Freeze", skill_name="a/b", replacement="a/c"),
            "policy: Freeze. Use a/c instead. Need it? Ask for an exception: https://x/y?skill=a%2Fb",
        ),
        (
            Decision("block", "Use a/c instead!", policy_name="Freeze", skill_name="a/b", replacement="a/c"),
            "policy: Freeze. Use a/c instead! Need it? Ask for an exception: https://x/y?skill=a%2Fb",
        ),
        (
            Decision("block", "two\nlines", skill_name="a/b"),
            "two lines. Need it? Ask for an exception: https://x/y?skill=a%2Fb",
        ),
    ],
)
def test_the_reason_of_a_denial(decision: Decision, text: str) -> None:
    header = {"requests_url": "https://x/y", "base_url": "", "org": "acme"}
    assert deny_text(decision, header) == "gstack blocked this skill — " + text


@pytest.mark.parametrize(
    ("requests", "base", "page"),
    [
        ("", "https://b/", "https://b/my%20org/requests/exception?policy=p&skill=a%2Fb"),
        ("", "http://127.0.0.1:8", "http://127.0.0.1:8/my%20org/requests/exception?policy=p&skill=a%2Fb"),
        ("", "file:///site", ""),
        ("", "", ""),
        ("https://r/form?x=1", "file:///site", "https://r/form?x=1&policy=p&skill=a%2Fb"),
        ("mailto:it@acme", "https://b", "mailto:it@acme"),
    ],
)
def test_where_to_ask_for_an_exception(requests: str, base: str, page: str) -> None:
    header = {"requests_url": requests, "base_url": base, "org": "my org"}
    assert exception_page(Decision("block", skill_name="a/b", policy_id="p"), header) == page
    assert exception_page(Decision("block"), None) == ""


def test_quoting_is_that_of_urllib() -> None:
    from urllib.parse import quote as standard

    text = "a/b c?&=#%+~_.-é\n"
    assert quote(text) == standard(text, safe="")


def test_a_warning_without_a_reason_names_the_policy() -> None:
    assert warn_text(Decision("warn", skill_name="x", policy_name="P")) == "gstack: warning for x — policy: P."
    assert warn_text(Decision("warn", skill_name="x", rule="z")).endswith("Flagged by your organisation's policy.")
