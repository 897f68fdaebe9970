"""A sweep on a Ray cluster of this machine; `make soak` runs it if ray is installed.

Checked: the rows are those of the local engine, and a worker that is killed in the middle costs nothing. The same rows come
from a cluster that `ray start` has made, by its address.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# The workers do not have the package: it is sent to them.
sys.path.insert(0, str(HERE.parent))

import openraid  # noqa: E402


def main() -> None:
    try:
        import ray
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
    ray.shutdown()
    del os.environ["FAKE_DIE_ONCE"]
    by_address(axes, fake, list(local.rows()))


def by_address(axes: dict, fake: str, wanted: list) -> None:
    program = shutil.which("ray", path=str(pathlib.Path(sys.executable).parent)) or shutil.which("ray")
    assert program, "ray is installed, and its program is not"
    # `ray start` makes a token if there is none, and a driver has to be told to use it.
    os.environ["RAY_AUTH_MODE"] = "token"
    subprocess.run([program, "start", "--head", "--port=6399", "--num-cpus=2", "--include-dashboard=false"], check=True)
    try:
        for address in ("127.0.0.1:6399", "ray://127.0.0.1:10001"):
            found = openraid.sweep(axes, binary=fake, address=address, progress=False)
            assert (found.failures, list(found.rows())) == ({}, wanted), address
            print(f"the same sweep on the cluster at {address}")
    finally:
        subprocess.run([program, "stop"], check=True)


if __name__ == "__main__":
    main()
