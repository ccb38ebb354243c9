"""`mesh`: prove the network, alone, in pairs, by leaves, by rails, as a whole."""

from recovery.steps.mesh.params import MeshParams
from recovery.steps.mesh.rejudging import rejudged
from recovery.steps.mesh.verb import MESH

__all__ = ["MESH", "MeshParams", "rejudged"]
