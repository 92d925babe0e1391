"""Python functions and scripts as HTCJobs of htcd: see docs/python.md.

    import htc
    jobs = htc.submit(lambda x: x * x, items=[1, 2, 3], image="python:3.13")
    jobs.results()
"""

from concurrent.futures import as_completed, wait

from .errors import Error, JobError
from .futures import Future, Futures
from .submission import attach, map, submit

__all__ = ["Error", "Future", "Futures", "JobError", "as_completed", "attach", "map", "submit", "wait"]


def __getattr__(name: str):
    if name == "HTCCluster":  # nothing else needs Dask
        from .dask import HTCCluster

        return HTCCluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
