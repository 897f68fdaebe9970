"""A sweep on a Ray cluster of this machine; `make soak` runs it if ray is installed.

Checked: the rows are those of the local engine, and a worker that is killed in the middle costs nothing.
"""

import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# The workers do not have the package: it is sent to them.
sys.path.insert(0, str(HERE.parent))

import openraid  # noqa: E402


def main() -> None:
    try:
        import ray  # noqa: F401
    except ImportError:
        print("left out: ray is not installed (pip install ray)")
        return
    fake = str(HERE / "fake-openraid")
    axes = {"array": ["raid5x4", "raid6x4"], "depth": [1, 4, 16]}
    local = openraid.sweep(axes, binary=fake, engine="local", progress=False)
    with tempfile.TemporaryDirectory() as folder:
        once = os.path.join(folder, "died")
        os.environ["FAKE_DIE_ONCE"] = once
        found = openraid.sweep(axes, binary=fake, engine="ray", workers=2, out=folder)
        assert os.path.exists(once), "no worker was killed"
        assert found.failures == {}, found.failures
        assert list(found.rows()) == list(local.rows()), list(found.rows())
        again = openraid.sweep(axes, binary=fake, engine="ray", workers=2, out=folder)
        assert again.kept == len(again.cells), again.kept
    print("a sweep of 6 cells on a local Ray cluster: as by threads, with one worker killed")


if __name__ == "__main__":
    main()
