"""`make sbom`: what the project is made of, as a CycloneDX document, with the licence of every part.

It lists what the lock files name: Python packages of requirements.lock, jars of scripts/*.lock. A package's licence is
what its own metadata say; of one that this Python's environment does not have (`tomli` on a newer Python), none is
stated.
"""

import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from scripts.setup import LOCKS, locked

PROJECT = LOCKS.parent  # where the locks are

REQUIREMENT = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?==(?P<version>[^ ;\\]+)(?P<rest>.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL
)
UNKNOWN = "not stated"


def components() -> list[dict[str, Any]]:
    """The locked parts as CycloneDX components, sorted by their package URL."""
    found = []
    for match in REQUIREMENT.finditer((PROJECT / "requirements.lock").read_text(encoding="utf-8")):
        name, version = match["name"], match["version"]
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", match["rest"])
        found.append(_component(f"pkg:pypi/{name.lower()}@{version}", name, version, hashes, licence_of(name)))
    for lock in sorted(LOCKS.glob("*.lock")):
        for coordinates, (digest, licence) in locked(lock.name).items():
            group, artifact, version = coordinates.split(":")
            found.append(_component(f"pkg:maven/{group}/{artifact}@{version}", artifact, version, [digest], licence))
    return sorted(found, key=lambda part: str(part["purl"]))


def licence_of(package: str) -> str:
    """The licence that an installed package states: an SPDX expression, else its classifiers, else a short text."""
    try:
        given = metadata.metadata(package).json
    except metadata.PackageNotFoundError:
        return UNKNOWN
    classifiers = [line.rsplit(" :: ", 1)[1] for line in given.get("classifier", []) if line.startswith("License :: ")]
    text = str(given.get("license", "")).strip()
    stated = text if text and "\n" not in text and len(text) <= 60 else ""
    return str(given.get("license_expression") or " or ".join(classifiers) or stated or UNKNOWN)


def _component(purl: str, name: str, version: str, hashes: list[str], licence: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "library", "bom-ref": purl, "purl": purl, "name": name, "version": version}
    part["hashes"] = [{"alg": "SHA-256", "content": digest} for digest in hashes]
    if licence != UNKNOWN:
        part["licenses"] = [{"license": {"name": licence}}]
    return part


def document() -> dict[str, Any]:
    """The whole document, the same for the same locks and environment."""
    project = {"type": "application", "name": "debezium-lakehouse", "licenses": [{"license": {"id": "Apache-2.0"}}]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": project},
        "components": components(),
    }


def main() -> int:
    made = document()
    path = PROJECT / "target" / "sbom.cdx.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    by_licence: dict[str, list[str]] = {}
    for part in made["components"]:
        licence = part["licenses"][0]["license"]["name"] if "licenses" in part else UNKNOWN
        by_licence.setdefault(licence, []).append(part["name"])
    for licence, names in sorted(by_licence.items()):
        print(f"{licence}: {', '.join(sorted(set(names)))}")
    print(f"\n{len(made['components'])} parts are listed in {Path('target') / path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
