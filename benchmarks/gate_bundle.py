"""A policy bundle of a chosen size, signed and installed as a sync installs it, for the gate's benchmark."""

import json
import time
from typing import Any

from gstack.gate.bundle import install_bundle
from gstack.gate.signing import new_keys, private_key, sign
from gstack.gate.trust import pin
from gstack.state import ensure_dir

#: Namespaces that the entries are spread over.
SPACES = [f"team{number}" for number in range(20)]


def bench_payload(policies: int, entries: int) -> dict[str, Any]:
    """A payload with so many policies (half by namespace, half by target) and entries, ``investigate`` among them."""
    rows = [
        {
            "policy_id": f"pol_{number:06d}",
            "name": f"Policy number {number}",
            "matcher_type": "declared_metadata" if number % 2 else "namespace",
            "match_value": f"targets: t{number % 500}" if number % 2 else f"foreign{number}",
            "action": ("warn", "halt", "allow")[number % 3],
            "reason": f"The reason of policy {number}, in a sentence that people can read.",
        }
        for number in range(policies)
    ]
    index: dict[str, Any] = {
        f"{SPACES[number % 20]}/skill-number-{number // 20}": {
            "version": f"1.{number % 7}.0",
            "status": "approved" if number % 10 else "deprecated",
            "kind": "skill",
            "targets": [f"t{number % 700}"],
            "tags": ["crm", "ops"],
            "digest": "sha256:" + "0" * 64,
        }
        for number in range(entries - 1)
    }
    index["team0/investigate"] = {"version": "1.0.0", "status": "approved", "kind": "skill", "targets": [], "tags": []}
    return {"org": "bench", "version": 1, "namespaces": SPACES, "policies": rows, "manifest_index": index}


def install_bench_bundle(root: str, policies: int, entries: int) -> int:
    """Install such a bundle into a state folder; gives its size in bytes."""
    private, public = new_keys()
    ensure_dir(root)
    pin(root, org="bench", base_url="https://policy.example", key=public, how="first use", now=time.time())
    data = sign(json.dumps(bench_payload(policies, entries)), private_key(private))
    install_bundle(root, data)
    return len(data)
