#!/usr/bin/env python3
"""The libraries in the program, as a bill of materials in CycloneDX 1.5 (JSON).

    tools/sbom.py PACKAGE [TARGET]

Everything that `cargo metadata` resolves for a package of this repository and is linked into it: names, versions, licences, the checksums of
Cargo.lock, and which library uses which. Equal for each build of a commit: its time is SOURCE_DATE_EPOCH, and it has no serial number.
"""

import datetime
import json
import os
import re
import subprocess
import sys


def lock_checksums(path):
    """(name, version) -> sha256, from Cargo.lock."""
    found = {}
    for block in open(path).read().split("[[package]]")[1:]:
        fields = dict(re.findall(r'^(\w+) = "(.*)"$', block, re.M))
        if "checksum" in fields:
            found[fields["name"], fields["version"]] = fields["checksum"]
    return found


def linked(metadata, root):
    """Identities of the packages that end up in the program, with those that each uses."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    uses, waiting = {}, [root]
    while waiting:
        own = waiting.pop()
        if own in uses:
            continue
        # Libraries that only build scripts or tests use are not linked.
        normal = [dep for dep in nodes[own]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        uses[own] = sorted(dep["pkg"] for dep in normal)
        waiting += uses[own]
    return uses


def main():
    name = sys.argv[1]
    target = sys.argv[2] if len(sys.argv) > 2 else re.search(r"host: (\S+)", subprocess.check_output(["rustc", "-vV"], text=True))[1]
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    metadata = json.loads(subprocess.check_output(command))
    packages = {package["id"]: package for package in metadata["packages"]}
    root = next(package["id"] for package in metadata["packages"] if package["name"] == name)
    checksums = lock_checksums("Cargo.lock")

    def reference(identity):
        package = packages[identity]
        own = "" if package["source"] else "?vcs_url=openraid"
        return f"pkg:cargo/{package['name']}@{package['version']}{own}"

    def component(identity):
        package = packages[identity]
        key = package["name"], package["version"]
        made = {"type": "application" if identity == root else "library", "bom-ref": reference(identity), "name": key[0],
                "version": key[1], "purl": reference(identity)}
        if package["license"]:
            # Old manifests write "MIT/Apache-2.0".
            made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if key in checksums:
            made["hashes"] = [{"alg": "SHA-256", "content": checksums[key]}]
        if package["repository"]:
            made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        return made

    uses = linked(metadata, root)
    order = sorted(uses, key=reference)
    time = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": component(root)},
        "components": [component(identity) for identity in order if identity != root],
        "dependencies": [{"ref": reference(identity), "dependsOn": sorted(map(reference, uses[identity]))} for identity in order],
    }
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
