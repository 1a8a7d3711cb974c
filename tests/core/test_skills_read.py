"""One skill: its fields, the homes of our keys, overlays, and files that aren't what they should be."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstack import skills
from gstack.skills import (
    SkillSkipped,
    apply_overlay,
    read_overlay,
    read_skill,
    skill_from_plain,
    skill_to_plain,
)


def write(folder: Path, head: str = "", body: str = "", *, beside: "str | None" = None) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "SKILL.md"
    path.write_text(f"---\n{head}\n---\n{body}\n", encoding="utf-8")
    if beside is not None:
        (folder / "gstack.yaml").write_text(beside, encoding="utf-8")
    return str(path)


def read(tmp_path: Path, head: str, *, beside: "str | None" = None, **options: Any) -> Any:
    return read_skill(write(tmp_path / "mine", head, beside=beside), "mine", "personal", **options)


def test_every_field(tmp_path: Path) -> None:
    path = write(
        tmp_path / "mine",
        "name: mine\ndescription: |\n  Does it.\n  Well.\ntriggers: [fix this bug]\nrouting: off\n"
        "contract: {version: 1}",
        "# Mine\n\n1. Reproduce **it**.\n2. Then more.",
    )
    skill = read_skill(path, "mine", "project")
    assert (skill.name, skill.label, skill.scope, skill.path) == ("mine", None, "project", path)
    assert skill.description == "Does it.\nWell."
    assert skill.triggers == ("fix this bug",)
    assert (skill.routing_off, skill.routing_on) == (True, False)
    assert skill.contract == {"version": 1}
    assert skill.first_step == "Reproduce it."
    assert skill.sources == {"triggers": "SKILL.md", "routing": "SKILL.md", "contract": "SKILL.md"}


def test_the_label_is_the_frontmatter_name_where_it_differs(tmp_path: Path) -> None:
    path = write(tmp_path / "release-notes", "name: label-differs")
    assert read_skill(path, "release-notes", "personal").label == "label-differs"
    assert read_skill(path, "acme:release-notes", "plugin").label == "label-differs"
    assert read_skill(path, "acme:label-differs", "plugin").label is None
    assert read_skill(write(tmp_path / "404", "name: 404"), "404", "personal").label is None
    assert read_skill(write(tmp_path / "bare", "description: d"), "bare", "personal").label is None


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ("fix this bug", ("fix this bug",)),
        ("off", ("off",)),
        ("[a b, ' c  d ', a b]", ("a b", "c d")),
        ("[Yes, No, on]", ("Yes", "No", "on")),
        ("[yes it is, 404, 1.5, 2026-01-02, null, {a: b}, [c], '', '404']", ("yes it is", "404")),
        ("\n  - one\n\n  - two # why\n  # - three\n", ("one", "two")),
        ("|\n  one phrase\n", ("one phrase",)),
        ("[]", ()),
        ("", ()),
        ("null", ()),
        ("~", ()),
    ],
)
def test_triggers(tmp_path: Path, written: str, want: "tuple[str, ...]") -> None:
    skill = read(tmp_path, f"triggers: {written}")
    assert skill.triggers == want
    assert "problem:triggers" not in skill.sources


@pytest.mark.parametrize("written", ["404", "2026-01-02", "{keywords: [a, b]}", "1.5"])
def test_unusable_triggers_are_reported(tmp_path: Path, written: str) -> None:
    skill = read(tmp_path, f"triggers: {written}", beside="triggers: [from beside]")
    assert skill.triggers == ("from beside",)
    assert skill.sources["triggers"] == "gstack.yaml"
    assert "list of phrases" in skill.sources["problem:triggers"]


@pytest.mark.parametrize("word", ["off", "Off", "no", "NO", "false", "0", '"off"'])
def test_routing_off(tmp_path: Path, word: str) -> None:
    skill = read(tmp_path, f"routing: {word}")
    assert (skill.routing_off, skill.routing_on) == (True, False)


@pytest.mark.parametrize("word", ["on", "yes", "true", "1"])
def test_a_skill_cannot_bring_itself_in(tmp_path: Path, word: str) -> None:
    skill = read(tmp_path, f"routing: {word}", beside="routing: off")
    assert (skill.routing_off, skill.routing_on) == (False, False)
    brought = read(tmp_path, "routing: off", overlay={"routing": word})
    assert (brought.routing_off, brought.routing_on) == (False, True)
    assert brought.sources["routing"] == "skills.yaml"


def test_an_unknown_routing_word_is_reported(tmp_path: Path) -> None:
    skill = read(tmp_path, "routing: maybe")
    assert not skill.routing_off
    assert "on or off" in skill.sources["problem:routing"]


def test_a_skill_reserved_for_people_is_not_routed(tmp_path: Path) -> None:
    """The host's skill tool refuses it, so a hint would lead nowhere."""
    skill = read(tmp_path, "disable-model-invocation: true")
    assert skill.routing_off
    assert skill.sources["routing"] == "disable-model-invocation"
    assert not read(tmp_path, "disable-model-invocation: false").routing_off


def test_homes_in_order(tmp_path: Path) -> None:
    """The first home that sets a key wins, for each key by itself, and the ignored ones are named."""
    head = (
        "triggers: [top]\n"
        "metadata:\n"
        "  gstack-triggers: '[meta]'\n"
        "  gstack-routing: off\n"
        "  gstack-contract: |\n    version: 1\n    items: []\n"
    )
    beside = "triggers: [beside]\nrouting: on\ncontract: {version: 9}\n"
    skill = read(tmp_path, head, beside=beside)
    assert skill.triggers == ("top",)
    assert skill.routing_off
    assert skill.contract == {"version": 1, "items": []}
    assert skill.sources == {
        "triggers": "SKILL.md",
        "others:triggers": "metadata, gstack.yaml",
        "routing": "metadata",
        "others:routing": "gstack.yaml",
        "contract": "metadata",
        "others:contract": "gstack.yaml",
    }
    over = read(tmp_path, head, beside=beside, overlay={"triggers": ["mine"], "contract": {"version": 2}})
    assert over.triggers == ("mine",)
    assert over.contract == {"version": 2}
    assert over.sources["others:triggers"] == "SKILL.md, metadata, gstack.yaml"
    assert over.sources["contract"] == "skills.yaml"
    assert over.sources["routing"] == "metadata"


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ("[real, list]", ("real", "list")),
        ('"[in, text]"', ("in", "text")),
        ("'- one\n\n    - two'", ("one", "two")),
        ("|\n    - one\n    - two", ("one", "two")),
        ("just one phrase", ("just one phrase",)),
        ('"fix: this bug"', ("fix: this bug",)),
        ('"[unclosed"', ("[unclosed",)),
        ("", ()),
        ('""', ()),
    ],
)
def test_triggers_in_metadata(tmp_path: Path, written: str, want: "tuple[str, ...]") -> None:
    assert read(tmp_path, f"metadata:\n  gstack-triggers: {written}").triggers == want


def test_contract_in_metadata(tmp_path: Path) -> None:
    assert read(tmp_path, "metadata:\n  gstack-contract: {version: 1}").contract == {"version": 1}
    broken = read(tmp_path, 'metadata:\n  gstack-contract: "version: [1"')
    assert broken.contract == "version: [1", "declared, so it must be reported as invalid"
    assert "problem:metadata.gstack-contract" in broken.sources
    assert read(tmp_path, "metadata: text").contract is None


def test_contracts_are_kept_raw_and_plain(tmp_path: Path) -> None:
    skill = read(tmp_path, "contract:\n  version: 1\n  day: 2026-01-02\n  items: [{id: 7, must_pass: yes, 1: .inf}]")
    assert skill.contract == {"version": 1, "day": "2026-01-02", "items": [{"id": 7, "must_pass": "yes", "1": "inf"}]}
    assert read(tmp_path, "contract: nonsense").contract == "nonsense"
    assert read(tmp_path, "contract: [a]").contract == ["a"]
    assert read(tmp_path, "contract:").contract is None


def test_gstack_yaml_beside(tmp_path: Path) -> None:
    partly = read(tmp_path, "name: mine", beside="﻿triggers:\r\n  - one\r\ncontract: [open\r\n")
    assert partly.triggers == ("one",)
    assert partly.sources["problem:gstack.yaml:contract"].startswith("line ")
    listed = read(tmp_path, "name: mine", beside="- a\n- b\n")
    assert listed.sources["problem:gstack.yaml:"] == "is no mapping of keys to values"
    (tmp_path / "mine" / "gstack.yaml").unlink()
    (tmp_path / "mine" / "gstack.yaml").mkdir()
    assert read_skill(str(tmp_path / "mine" / "SKILL.md"), "mine", "personal").sources == {
        "problem:gstack.yaml": "is a folder"
    }


# ---------------------------------------------------------------------------------------------- overlays


def test_read_overlay(tmp_path: Path) -> None:
    path = tmp_path / "skills.yaml"
    assert read_overlay(str(path)) == {}
    path.write_text(
        "investigate:\n  triggers: [find the cause]\n  routing: on\n"
        "acme:deploy-check:\n  routing: off\n"
        '"with space":\n  contract: {version: 1}\n'
    )
    problems: list[str] = []
    assert read_overlay(str(path), problems) == {
        "investigate": {"triggers": ["find the cause"], "routing": "on"},
        "acme:deploy-check": {"routing": "off"},
        "with space": {"contract": {"version": 1}},
    }
    assert problems == []
    path.write_text("")
    assert read_overlay(str(path)) == {}


def test_a_bad_entry_of_an_overlay_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "skills.yaml"
    path.write_text("one:\n  triggers: [a\ntwo:\n  routing: off\nthree: text\nfour:\n  trigger: [x]\n  routing: on\n")
    problems: list[str] = []
    assert read_overlay(str(path), problems) == {"two": {"routing": "off"}, "four": {"routing": "on"}}
    assert len(problems) == 3
    assert problems[0].startswith("one: line ")
    assert problems[1] == "three: must hold triggers, routing or contract"
    assert "'trigger'" in problems[2]


def test_an_overlay_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SkillSkipped, match="is a folder"):
        read_overlay(str(tmp_path))
    path = tmp_path / "skills.yaml"
    path.write_text("just text")
    problems: list[str] = []
    assert read_overlay(str(path), problems) == {}
    assert problems == ["is no mapping of keys to values"]


def test_an_overlay_can_empty_the_triggers(tmp_path: Path) -> None:
    skill = read(tmp_path, "triggers: [a b]\ncontract: {version: 1}", overlay={"triggers": [], "contract": None})
    assert skill.triggers == ()
    assert skill.contract == {"version": 1}
    assert skill.sources["others:triggers"] == "SKILL.md"


def test_overlays_stack(tmp_path: Path) -> None:
    skill = read(tmp_path, "triggers: [own]")
    skill = apply_overlay(skill, {"triggers": ["project"], "routing": "off"}, skills.PROJECT_OVERLAY)
    skill = apply_overlay(skill, {"triggers": "person"}, skills.OVERLAY)
    assert skill.triggers == ("person",)
    assert skill.routing_off
    assert skill.sources["others:triggers"] == ".gstack/skills.yaml, SKILL.md"


def test_a_useless_overlay_value_is_reported(tmp_path: Path) -> None:
    skill = read(tmp_path, "routing: off", overlay={"routing": "perhaps"})
    assert skill.routing_off
    assert skill.sources["problem:routing"] == "skills.yaml: routing must be on or off"


# ------------------------------------------------------------------------------------------------- files


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(SkillSkipped, match="No such file"):
        read_skill(str(tmp_path / "SKILL.md"), "x", "personal")
    (tmp_path / "SKILL.md").mkdir()
    with pytest.raises(SkillSkipped, match="is a folder"):
        read_skill(str(tmp_path / "SKILL.md"), "x", "personal")
    link = tmp_path / "link.md"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(SkillSkipped, match="link to nothing"):
        read_skill(str(link), "x", "personal")
    loop = tmp_path / "loop.md"
    loop.symlink_to(loop)
    with pytest.raises(SkillSkipped, match="can't be read"):
        read_skill(str(loop), "x", "personal")
    with pytest.raises(SkillSkipped, match="can't be read"):
        read_skill("a\0b", "x", "personal")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no fifos here")
def test_a_pipe_is_never_waited_for(tmp_path: Path) -> None:
    path = str(tmp_path / "SKILL.md")
    os.mkfifo(path)
    with pytest.raises(SkillSkipped, match="no regular file"):
        read_skill(path, "x", "personal")


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "mine", "name: mine")
    Path(path).chmod(0)
    with pytest.raises(SkillSkipped, match="Permission denied"):
        read_skill(path, "mine", "personal")


def test_only_the_head_and_the_start_of_the_body_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "mine", "name: mine", "x" * 3_000_000)
    seen: list[int] = []
    real = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: seen.append(size) or real(fd, size))
    read_skill(path, "mine", "personal")
    assert sum(seen) < 100_000
    long_head = write(
        tmp_path / "long", "x: |\n" + "  line\n" * 20_000 + "name: far\ntriggers: [a b]", "1. Go.\n" + "x" * 200_000
    )
    skill = read_skill(long_head, "long", "personal")
    assert (skill.label, skill.triggers, skill.first_step) == ("far", ("a b",), "Go.")


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A half-written file is read again until it holds still."""
    path = write(tmp_path / "mine", "name: mine\ntriggers: [old one]")
    real = os.read
    done = threading.Event()

    def slow(fd: int, size: int) -> bytes:
        data = real(fd, size)
        if not done.is_set():
            done.set()
            write(tmp_path / "mine", "name: mine\ndescription: longer\ntriggers: [new one]")
        return data

    monkeypatch.setattr(os, "read", slow)
    assert read_skill(path, "mine", "personal").triggers == ("new one",)


def test_a_file_that_never_holds_still_is_read_even_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "mine", "name: mine\ntriggers: [a b]")
    real = os.read

    def growing(fd: int, size: int) -> bytes:
        with open(path, "ab") as file:
            file.write(b"more\n")
        return real(fd, min(size, 100))

    monkeypatch.setattr(os, "read", growing)
    monkeypatch.setattr(skills, "_FIRST_PART", 1000)
    assert read_skill(path, "mine", "personal").triggers == ("a b",)


# -------------------------------------------------------------------------------------------- plain data


def test_there_and_back(tmp_path: Path) -> None:
    import marshal

    skill = read(tmp_path, "name: y\ntriggers: [a b]\ncontract: {version: 1, items: [{id: x, n: 1.5, o: null}]}")
    data = marshal.loads(marshal.dumps(skill_to_plain(skill)))
    assert skill_from_plain(data) == skill
    assert skill_from_plain(dict(data, triggers=list(data["triggers"]))) == skill


@given(st.binary(max_size=200), st.binary(max_size=80))
def test_any_bytes_make_a_skill_or_a_reason(
    tmp_path_factory: pytest.TempPathFactory, head: bytes, beside: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_bytes(b"---\n" + head + b"\n---\nbody")
    (folder / "gstack.yaml").write_bytes(beside)
    try:
        skill = read_skill(str(folder / "SKILL.md"), "any", "personal")
    except SkillSkipped as error:
        reason = error.reason
    else:
        reason = "read"
        assert skill_from_plain(skill_to_plain(skill)) == skill
        assert all("\n" not in trigger and trigger.strip() for trigger in skill.triggers)
        assert all(isinstance(value, str) for value in skill.sources.values())
    assert reason
    assert "\n" not in reason
