"""Installed plug-ins that have no part in an event aren't imported for it, however many there are."""

import time
from pathlib import Path

import pytest

from gstack.lowlevel import POSIX
from gstack.sandbox import Sandbox
from gstack.snapshot import RACY_NS
from gstack.testing import FakeSite

pytestmark = pytest.mark.skipif(not POSIX, reason="counts what the launcher imports")
TEXT = """
with open({path!r}, "a") as file:
    file.write("{module}\\n")
from gstack.api import hookimpl
class Kind:
    name = "{name}"
    fields = ()
@hookimpl
def gstack_contract_kinds(): return [Kind()]
"""
SKILL = "---\nname: investigate\ndescription: d\ntriggers:\n  - fix this bug\n---\n"


@pytest.mark.parametrize("count", [3, 10, 50])
def test_a_prompt_imports_none_of_them(count: int, tmp_path: Path) -> None:
    box = Sandbox(str(tmp_path / "box"))
    box.configure(skill_routing="on")
    box.add_skill("investigate", SKILL)
    site = FakeSite(str(tmp_path / "site"), box)
    seen = tmp_path / "imported"
    for number in range(count):
        module, name = f"acme_kind{number}", f"acme.kind{number}"
        text = TEXT.format(path=str(seen), module=module, name=name)
        site(f"acme-kind{number}", {"gstack.contract_kinds": {name: module}}, {module + ".py": text})

    def ask(session: str) -> None:
        payload = {"session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": "fix this bug"}
        assert "/investigate" in str(box.run("UserPromptSubmit", payload).answer)

    ask("first")
    time.sleep(RACY_NS / 1e9 + 0.1)  # what is younger isn't trusted by a snapshot; the first import wrote bytecode
    ask("second")
    looked_at = seen.read_text().splitlines()
    assert sorted(set(looked_at)) == sorted(f"acme_kind{number}" for number in range(count))
    ask("third")
    ask("fourth")
    assert seen.read_text().splitlines() == looked_at
