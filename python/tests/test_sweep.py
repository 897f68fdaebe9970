"""Tests of the package; nothing but Python 3 is needed: ``python3 -m unittest discover python/tests``."""

import json
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import openraid  # noqa: E402
from openraid import _cells, _sweep  # noqa: E402

FAKE = str(HERE / "fake-openraid")


class Sweeps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.log = os.path.join(self.folder.name, "log")
        os.environ["FAKE_LOG"] = self.log

    def tearDown(self):
        del os.environ["FAKE_LOG"]
        self.folder.cleanup()

    def runs(self):
        path = pathlib.Path(self.log)
        return path.read_text().splitlines() if path.exists() else []

    def sweep(self, cells, **options):
        return openraid.sweep(cells, binary=FAKE, **{"engine": "local", "progress": False, **options})

    def test_the_notebook_describes_ten_thousand_configurations_and_a_slice_of_it_runs(self):
        path = HERE.parent / "examples" / "sweep.ipynb"
        code = ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        names = {}
        exec(code[0], names)
        self.assertEqual(len(names["cells"]), 10_080)
        self.assertEqual(len({json.dumps(cell, sort_keys=True) for cell in names["cells"]}), 10_080)
        found = self.sweep(names["cells"][::2_000])
        self.assertEqual((len(list(found.rows())), found.failures), (6, {}))
        # The plots take columns that a row has.
        row = next(iter(found.rows()))
        for column in ("array", "drive", "depth", "reads", "cache_mib", "iops"):
            self.assertIn(column, row)

    def test_a_grid_is_every_combination_and_a_cell_is_a_command_line(self):
        cells = openraid.grid({"array": ["raid5x4", "raid6x4"], "depth": [1, 4, 16], "first_32_gb": True})
        self.assertEqual(len(cells), 6)
        self.assertEqual(
            _cells.arguments("simulate", cells[4]), ["simulate", "raid6x4", "--depth", "4", "--first-32-gb", "--json"]
        )
        self.assertEqual(_cells.arguments("plan", {"drives": 4, "range": False}), ["plan", "--drives", "4", "--json"])
        for wrong in ({}, {"depth": []}):
            with self.assertRaises(ValueError):
                openraid.grid(wrong)

    def test_a_sweep_that_is_started_again_runs_what_is_missing(self):
        axes = {"array": ["raid5x4", "raid6x4"], "depth": [1, 4]}
        first = self.sweep(axes, out=self.folder.name)
        self.assertEqual([row["iops"] for row in first.rows()], [100.0, 400.0, 100.0, 400.0])
        self.assertEqual((len(self.runs()), first.kept), (4, 0))
        # One more value, and one file that was cut off.
        kept = sorted(pathlib.Path(self.folder.name, "cells").glob("*.json"))
        kept[0].write_text(kept[0].read_text()[:10])
        again = self.sweep({**axes, "depth": [1, 4, 16]}, out=self.folder.name)
        self.assertEqual((len(self.runs()), again.kept), (4 + 3, 3))
        self.assertEqual(sorted(row["iops"] for row in again.rows()), [100.0, 100.0, 400.0, 400.0, 1600.0, 1600.0])

    def test_a_refused_configuration_is_told_in_the_programs_words_and_costs_no_other(self):
        found = self.sweep({"array": ["raid7x4", "raid5x4"]})
        self.assertEqual(found.failures, {0: "raid7x4 is not an array"})
        rows = list(found.rows())
        self.assertEqual((rows[0]["error"], rows[1]["iops"]), ("raid7x4 is not an array", 100.0))

    def test_a_worker_with_another_build_gives_no_result(self):
        cell, mark = {"array": "raid5x4"}, _cells.stamp(FAKE)
        self.assertEqual(_sweep._one(FAKE, "simulate", cell, mark)[0]["iops"], 100.0)
        document, error = _sweep._one(FAKE, "simulate", cell, "openraid 0.0.9 0123456789abcdef")
        self.assertIsNone(document)
        self.assertIn(f"another build of {FAKE} ({mark}) than this machine (openraid 0.0.9 0123456789abcdef)", error)
        self.assertEqual(len(self.runs()), 1)

    def test_an_interrupted_sweep_begins_no_further_cell_and_keeps_what_has_ended(self):
        def interrupt(done):
            if done == 2:
                raise KeyboardInterrupt

        axes = {"array": "raid5x4", "depth": list(range(1, 101))}
        with unittest.mock.patch.object(_sweep, "_teller", lambda cells: interrupt), self.assertRaises(KeyboardInterrupt):
            self.sweep(axes, out=self.folder.name, workers=1, progress=True)
        # The two that were told, and what the thread had begun meanwhile.
        self.assertLess(len(self.runs()), 20)
        self.assertEqual(len(list(pathlib.Path(self.folder.name, "cells").glob("*.json"))), 2)

    def test_a_sweep_with_nothing_to_run_starts_no_engine(self):
        axes = {"array": "raid5x4", "depth": [1, 4]}
        self.sweep(axes, out=self.folder.name)
        with unittest.mock.patch.object(_sweep, "_by_ray", side_effect=AssertionError("it was started")):
            self.assertEqual(self.sweep(axes, out=self.folder.name, engine="ray").kept, 2)

    def test_wrong_use_is_told_before_anything_runs(self):
        with self.assertRaises(openraid.ProgramFailed):
            openraid.sweep({"array": "raid5x4"}, binary=os.path.join(self.folder.name, "none"), engine="local")
        for options in ({"verb": "erase"}, {"engine": "slurm"}, {"address": "ray://x"}):
            with self.assertRaises(ValueError):
                self.sweep({"array": "raid5x4"}, **options)
        self.assertEqual(self.runs(), [])

    def test_the_levels_of_a_plan_are_rows(self):
        level = {"array": "raid5x4", "capacity": 3, "healthy": {"iops": 7.0}, "loss": {"five_years": 0.1}}
        level["loss"].update(array_five_years=[0.02, 0.3], sector_five_years=[0.08, 0.4])
        level.update(steady=False, low_percent=40.0, high_percent=41.0, journal={"without": {"iops": 2.0}})
        body = {"drives": 4, "drive": "d", "bus": "b", "levels": [{"possible": level}], "recommendation": None}
        impossible = {**body, "drives": 2, "levels": [{"impossible": {"array": "raid5x2", "reason": "too few"}}]}
        found = openraid.Sweep([{"load": "vm"}], [{**body, "more": [impossible]}])
        rows = list(found.rows())
        self.assertEqual((rows[0]["iops"], rows[0]["five_years"], rows[0]["load"]), (7.0, 0.1, "vm"))
        self.assertEqual((rows[0]["array_five_years"], rows[0]["sector_five_years"]), (0.02, 0.08))
        self.assertEqual((rows[0]["low_percent"], rows[0]["high_percent"], rows[0]["without_journal_iops"]), (40.0, 41.0, 2.0))
        self.assertEqual((rows[0]["steady"], rows[1]["drives"], rows[1]["error"]), (False, 2, "too few"))

    def test_a_row_says_whether_the_load_was_steady(self):
        found = openraid.Sweep([{"depth": 1}, {"depth": 4}], [{"iops": 1.0, "result": {"steady": False}}, {"iops": 2.0}])
        self.assertEqual([row.get("steady") for row in found.rows()], [False, None])


if __name__ == "__main__":
    unittest.main()
