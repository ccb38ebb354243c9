"""`kubernetes`: a Job, JobSet or PyTorchJob, created once on the nodes that are left."""

from recovery.launchers.kubernetes.launch import KUBERNETES

__all__ = ["KUBERNETES"]
