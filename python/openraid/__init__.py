"""Sweeps over simulated arrays.

``sweep`` runs ``openraid-lab simulate`` or ``openraid-lab plan`` for each configuration of a grid: by threads of this machine, or as
tasks of a Ray cluster. Nothing here simulates anything; the program does.
"""

from ._cells import Cell, CellFailed, ProgramFailed, grid
from ._sweep import Sweep, sweep

__all__ = ["Cell", "CellFailed", "ProgramFailed", "Sweep", "grid", "sweep"]
