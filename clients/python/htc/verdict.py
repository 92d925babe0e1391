"""What the status of an HTCJob and the lines of its jobs mean. Nothing here asks or changes anything."""

from __future__ import annotations

import re

from .errors import Error, JobError

_CANCEL = "htc.cern.ch/cancel-procs"
ENDED = ("Succeeded", "Failed", "Removed")


def _condition(status: dict, kind: str) -> dict:
    return next((c for c in status.get("conditions", []) if c["type"] == kind), {})


def never_sent(job: dict) -> str:
    """Returns why an HTCJob was refused before it had jobs in HTCondor; empty if it was not."""
    status = job.get("status", {})
    current = status.get("observedGeneration", 0) >= job["metadata"].get("generation", 0)
    if current and status.get("phase") == "Failed" and not status.get("clusterId"):
        return status.get("message") or _condition(status, "Failed").get("message") or "it was refused"
    return ""


def is_final(line: dict, status: dict) -> bool:
    """Reports whether the output of a job that has ended is here, or will never be."""
    if line.get("output") or line["state"] == "failed" and line.get("exitCode") is None and line.get("signal") is None:
        return True
    # Of jobs that ran, the output follows, unless htcd keeps none or has given up.
    fetched = _condition(status, "OutputFetched")
    if not fetched:
        return status.get("phase") in (*ENDED, "Suspended")
    return fetched["status"] == "True" or fetched.get("reason") in ("GivenUp", "Incomplete")


def error_of(name: str, line: dict, status: dict) -> Error | None:
    """Returns what is wrong with a job that is_final."""
    if line["state"] == "failed":
        return JobError(name, line)
    if not line.get("output"):
        why = _condition(status, "OutputFetched").get("message") or "htcd has not kept it"
        return Error(f"job {line['proc']} of {name} has succeeded, but its output is not here: {why}")
    return None


def removal(job: dict, unwanted: list[int], over: bool) -> dict | None:
    """Returns the change of an HTCJob that removes these of its jobs; over: none of the others is open."""
    if not unwanted or job.get("status", {}).get("phase") in ENDED:
        return None
    if over:
        return {"spec": {"suspend": True}}
    attempt = job.get("status", {}).get("attempt")
    if not job.get("status", {}).get("clusterId") or not attempt:
        return None  # later: only jobs that are in HTCondor can be removed one by one
    return {"metadata": {"annotations": {_CANCEL: f"{attempt}/{_ranges(unwanted)}"}}}


def cancelled(job: dict, count: int) -> list[int]:
    """Returns which of the first jobs of the present attempt were cancelled one by one, by whomever."""
    asked = (job["metadata"].get("annotations") or {}).get(_CANCEL, "")
    attempt, _, ranges = asked.partition("/")
    one = r"\d{1,9}(-\d{1,9})?"
    if attempt != str(job.get("status", {}).get("attempt")) or not re.fullmatch(f"{one}(,{one})*", ranges):
        return []
    numbers, after = [], 0
    for first, last in sorted((int(a), int(b or a)) for a, _, b in (r.partition("-") for r in ranges.split(","))):
        numbers += range(max(first, after), min(last, count - 1) + 1)  # thousands may overlap
        after = max(after, last + 1)
    return numbers


def bounds(workers: int, forgiven: int) -> dict[str, int]:
    """Returns the fields of an HTCJob of so many workers that bound how many there are, and how many may fail."""
    return {"parallelism": max(workers, 1), "maxFailures": forgiven + max(workers, 3)}


def workers(job: dict, wanted: set[int], states: dict[int, str], top: int, crashes: int) -> dict | None:
    """Returns the change of an HTCJob of workers after which its open jobs are those that are wanted.

    states has the jobs that have ended, top is the highest that is wanted or made, and crashes says how many have
    failed without having been connected, since a worker last was. While workers connect, such failures are forgiven; without, and when the
    notebook is gone, as many more as there are workers end the HTCJob.
    """
    wanted = wanted - states.keys()
    others = [proc for proc in range(top + 1) if proc not in wanted]
    forgiven = sum(states.get(proc) != "done" for proc in others) - crashes
    spec = {f: n for f, n in bounds(len(wanted), forgiven).items() if job["spec"].get(f) != n}
    change = {"spec": spec} if spec else {}
    asked = (job["metadata"].get("annotations") or {}).get(_CANCEL)
    cancel = removal(job, others, False) or {"metadata": {"annotations": {_CANCEL: None}}}
    if cancel["metadata"]["annotations"][_CANCEL] != asked:
        change.update(cancel)
    return change or None


def _ranges(numbers: list[int]) -> str:
    """Writes ascending numbers as 0,3-5."""
    parts: list[list[int]] = []
    for n in numbers:
        if parts and n == parts[-1][-1] + 1:
            parts[-1][1:] = [n]
        else:
            parts.append([n])
    return ",".join("-".join(map(str, part)) for part in parts)
