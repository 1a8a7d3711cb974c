"""Five outside plug-ins, installed with ``pip install -e`` into an environment of their own.

What works on the command line works in the hook, or is listed as not loadable there with the reason."""

import json
import os
import subprocess
import sysconfig
import venv
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from gstack import scaffold
from gstack.launcher import launcher_path
from gstack.lowlevel import POSIX
from gstack.sandbox import Reply, Sandbox
from gstack.testing import Transcript


def version_of(name: str) -> Version:
    try:
        return Version(metadata.version(name))
    except metadata.PackageNotFoundError:
        return Version("0")


pytestmark = pytest.mark.skipif(
    not POSIX
    or version_of("pip") < Version("21.3")
    or version_of("hatchling") < Version("1.27")
    or version_of("setuptools") < Version("70.1"),
    reason="needs pip, hatchling and setuptools beside gstack: tox -e thirdparty",
)
#: A kind in a project of setuptools; PACKAGES says where its modules are.
SETUPTOOLS = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "{dist}"
version = "1.0"

[project.entry-points."gstack.contract_kinds"]
"{name}" = "{module}"

[tool.setuptools]
{packages}
"""
KIND = """
from gstack.api import MISSING, Verdict, hookimpl
class Kind:
    name = "{name}"
    fields = ()
    def check(self, item, run): return Verdict(MISSING, "never")
    def fix(self, item): return "do {module}"
    def summary(self, item): return "a thing"
@hookimpl
def gstack_contract_kinds(): return [Kind()]
"""
SKILL = """---
name: {name}
description: d
triggers:
  - use {name} for this
contract:
  version: 1
  items:
    - id: item
      kind: {kind}
{fields}---
# {name}
"""


class Environment:
    """A virtual environment that sees this one's packages, and in which gstack runs."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = str(folder / "bin" / "python")
        paths = {"base": str(folder), "platbase": str(folder)}
        site = Path(sysconfig.get_path("purelib", "posix_prefix", vars=paths))
        (site / "outer.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder)}

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [self.python, *arguments]
        done = subprocess.run(
            command,
            env=self.env | env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            cwd=str(Path(self.python).parent),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def install(self, project: Path) -> None:
        self.run(
            "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-e", str(project)
        )


def setuptools_project(folder: Path, name: str, *, finder: bool) -> Path:
    """``finder``: its module lies where only an import hook leads (a package mapped to another folder)."""
    module = name.replace(".", "_")
    source = folder / ("elsewhere" if finder else "src") / module
    source.mkdir(parents=True)
    (source / "__init__.py").write_text(KIND.format(name=name, module=module))
    packages = (
        f'packages = ["{module}"]\npackage-dir = {{ {module} = "elsewhere/{module}" }}\n'
        if finder
        else 'package-dir = { "" = "src" }\npackages.find.where = ["src"]\n'
    )
    text = SETUPTOOLS.format(dist=module.replace("_", "-"), name=name, module=module, packages=packages)
    (folder / "pyproject.toml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    base = tmp_path_factory.mktemp("editable")
    made = Environment(base / "venv")
    for sort, name in (("kind", "acme.word_count"), ("scorer", "acme.bag"), ("host", "acme.robot")):
        project, _ = scaffold.create(sort, name, str(base))
        made.install(base / project.dist)
    for name, finder in (("acme.plain", False), ("acme.mapped", True)):
        folder = base / name
        folder.mkdir()
        made.install(setuptools_project(folder, name, finder=finder))
    return made


class Box(Sandbox):
    """A sandbox whose launcher and commands are the environment's, made by its own ``gstack setup``."""

    def __init__(self, folder: str, environment: Environment) -> None:
        super().__init__(folder)
        self.environment = environment
        os.unlink(launcher_path(self.root))

    def gstack(self, *arguments: str) -> str:
        return self.environment.run("-m", "gstack", *arguments, **self.env).stdout


@pytest.fixture
def box(tmp_path: Path, environment: Environment) -> Box:
    made = Box(str(tmp_path / "box"), environment)
    made.configure(skill_routing="on", skill_contracts="on", routed_skills="all")
    for kind, fields in (("acme.word_count", "      path: out.md\n"), ("acme.plain", ""), ("acme.mapped", "")):
        name = kind.replace(".", "-").replace("_", "-")
        made.add_skill(name, SKILL.format(name=name, kind=kind, fields=fields))
        made.add_skill(name, SKILL.format(name=name, kind=kind, fields=fields), folder=".robot-agent/skills")
    made.gstack("setup", "--skill-routing", "--skill-contracts", "--quiet")
    return made


def listed(box: Box) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in json.loads(box.gstack("plugins", "list", "--json"))}


def stop(box: Box, skill: str, tmp_path: Path) -> Reply:
    return box.run(
        "Stop", Transcript(tmp_path / f"{skill}.jsonl", session=skill, cwd=box.work).load(skill).say("Done.").stop()
    )


def test_each_is_listed_as_it_is(box: Box) -> None:
    rows = {name: row for name, row in listed(box).items() if name.startswith("acme.")}
    assert len(rows) == 5
    assert {row["state"] for row in rows.values()} == {"ok"}
    assert {name for name, row in rows.items() if not row["in_hook"]} == {"acme.mapped"}
    assert "only an import hook finds it; install it without -e" in rows["acme.mapped"]["why"]
    assert all(row["why"] == "" for name, row in rows.items() if name != "acme.mapped")


@pytest.mark.parametrize("skill", ["acme-word-count", "acme-plain"])
def test_a_kind_works_in_the_hook_as_on_the_command_line(skill: str, box: Box, tmp_path: Path) -> None:
    answer = stop(box, skill, tmp_path).answer or {}
    assert answer["reason"].startswith(f"SKILL_CONTRACT_UNMET {skill}")
    assert "ok (1 item)" in box.gstack("contract", "lint", f"{box.home}/.claude/skills/{skill}")


def test_the_scorer_works_in_the_hook_as_on_the_command_line(box: Box) -> None:
    box.gstack("config", "set", "route_scorer", "acme.bag")
    prompt = {"session_id": "p", "hook_event_name": "UserPromptSubmit", "prompt": "use acme-plain for this"}
    answer = box.run("UserPromptSubmit", prompt).answer or {}
    assert "/acme-plain" in answer["hookSpecificOutput"]["additionalContext"]
    assert "acme-plain" in box.gstack("route", "--explain", "use acme-plain for this")


def test_the_host_works_in_the_hook_as_on_the_command_line(box: Box) -> None:
    payload = {"agent": "robot-agent", "on": "ask", "run": "r", "dir": box.work, "text": "use acme-plain for this"}
    answer = box.run("ask", payload, host="acme.robot").answer or {}
    assert "/acme-plain" in answer["context"]
    assert "registered skill routing" in box.gstack("setup", "--host", "acme.robot", "--skill-routing")
    assert Path(box.home, ".robot-agent", "hooks.json").exists()


def test_what_the_hook_cant_load_is_told_there_too(box: Box, tmp_path: Path) -> None:
    """The stop is allowed, with a message that names the kind; on the command line the kind is there."""
    answer = stop(box, "acme-mapped", tmp_path).answer or {}
    assert set(answer) == {"systemMessage"}
    assert 'unknown kind "acme.mapped"' in answer["systemMessage"]
    assert "ok (1 item)" in box.gstack("contract", "lint", f"{box.home}/.claude/skills/acme-mapped")


def test_an_edit_of_the_source_counts_at_once(box: Box, tmp_path: Path) -> None:
    row = listed(box)["acme.plain"]
    assert row["state"] == "ok"
    assert "do acme_plain" in (stop(box, "acme-plain", tmp_path).answer or {})["reason"]
    source = Path(box.environment.python).parents[2]
    module = source / "acme.plain" / "src" / "acme_plain" / "__init__.py"
    kept = module.read_text()
    try:
        module.write_text(kept.replace("do acme_plain", "do it anew"))
        made = Transcript(tmp_path / "again.jsonl", session="again", cwd=box.work).load("acme-plain").say("Done.")
        assert "do it anew" in (box.run("Stop", made.stop()).answer or {})["reason"]
    finally:
        module.write_text(kept)


def test_gstack_itself_installs_and_uninstalls(box: Box, environment: Environment, tmp_path: Path) -> None:
    """``plugins install`` of a wheel, used in the hook at once, and ``plugins uninstall``."""
    project, _ = scaffold.create("resolver", "acme.calm", str(tmp_path))
    folder = str(tmp_path / project.dist)
    environment.run("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), folder)
    (wheel,) = tmp_path.glob("acme_calm-*.whl")
    box.configure(gate="on")
    Path(box.root, "freeze.txt").write_text("deploy\n")
    use = {"hook_event_name": "PreToolUse", "session_id": "g", "tool_name": "Skill", "tool_input": {"skill": "deploy"}}
    assert "It is frozen" not in str(box.run("PreToolUse", use).answer)
    try:
        assert box.gstack("plugins", "install", str(wheel)) == "acme.calm (acme-calm 0.1.0): ok\n"
        assert "It is frozen" in str(box.run("PreToolUse", use).answer)
        assert "acme.calm: ok" in box.gstack("plugins", "check", "acme.calm")
    finally:
        assert box.gstack("plugins", "uninstall", "acme.calm") == "acme-calm is uninstalled\n"
    assert "It is frozen" not in str(box.run("PreToolUse", use).answer)
    assert "acme.calm" not in listed(box)
