"""The kit that every contract kind should pass, the verdicts that only we know, and the real hook process."""

import os
import time
from pathlib import Path

import pytest
import vendor_file_exists

from gstack.api import Run
from gstack.testing import Case, ContractKindConformance

SKILL = """\
---
name: demo
description: Writes a report.
contract:
  version: 1
  items:
    - id: report
      kind: vendor.file_exists
      path: out/report.md
---
# Demo
"""


class TestFileExists(ContractKindConformance):
    plugin = vendor_file_exists
    examples = {"path": "out/report.md"}

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.folder = tmp_path
        (tmp_path / "new.md").write_text("new")
        (tmp_path / "old.md").write_text("old")
        os.utime(tmp_path / "old.md", (1_000_000, 1_000_000))

    def cases(self):
        run = Run("demo", "load", cwd=str(self.folder), loaded_at=time.time() - 60)
        elsewhere = Run("demo", "load", cwd=None, loaded_at=time.time() - 60)
        undated = Run("demo", "load", cwd=str(self.folder), loaded_at=None)
        return [
            Case({"path": "new.md"}, run, "met"),
            Case({"path": str(self.folder / "new.md")}, elsewhere, "met"),
            Case({"path": "old.md"}, run, "missing"),
            Case({"path": "none.md"}, run, "missing"),
            Case({"path": "."}, run, "missing"),
            Case({"path": "new.md"}, elsewhere, "cannot_tell"),
            Case({"path": "new.md"}, undated, "cannot_tell"),
        ]


def test_the_stop_is_held_once_until_the_file_is_there(gstack_sandbox, fake_install, run_hook, transcript):
    fake_install.project(Path(__file__).parents[1])
    gstack_sandbox.configure(skill_contracts="on")
    gstack_sandbox.add_skill("demo", SKILL)

    transcript.prompt("write the report").load("demo").say("Done.")
    held = run_hook("Stop", transcript.stop()).answer
    assert held["decision"] == "block"
    assert "Fix: report: write out/report.md" in held["reason"]

    report = Path(gstack_sandbox.work, "out", "report.md")
    report.parent.mkdir()
    report.write_text("# Report")
    transcript.feedback(held["reason"]).edit(str(report)).say("Written.")
    assert run_hook("Stop", transcript.stop(active=True)).answer is None
    assert "met_after_block skill=demo" in gstack_sandbox.log("skill-contract")[-1]


def test_the_plug_in_is_listed(gstack_sandbox, fake_install):
    fake_install.project(Path(__file__).parents[1])
    assert "vendor.file_exists" in gstack_sandbox.cli("plugins", "list").out.decode()
