"""The HTCJob whose jobs are the workers of a Dask cluster. Nothing here needs Dask."""

from __future__ import annotations

import copy
import json
import secrets
import sys
import threading
from collections.abc import Callable
from typing import Any

from . import verdict
from .cluster import Cluster, Patience, Refused
from .errors import Error, JobError

# Seconds between two looks at the HTCJob.
_PAUSE = 2.0


class Workers:
    """Keeps an HTCJob so that its open jobs are the workers that are wanted. While none is, there is no HTCJob.

    Workers have numbers. The first of those that are wanted when an HTCJob is made is its job 0. HTCondor makes its jobs
    in their order, as many at a time as spec.parallelism says; those that are not wanted are cancelled. A number is used
    again as long as HTCondor has not made its job.
    """

    def __init__(
        self, cluster: Cluster, job: dict, secret: dict[str, str],
        ended: Callable[[list[int]], Any], failed: Callable[[Error], Any], connected: Callable[[], set[int]],
    ):
        self._cluster, self._template, self._secret = cluster, job, secret
        # What is called from the thread: with wanted workers whose jobs have ended, with the error that is the end.
        self._ended, self._failed = ended, failed
        self._connected = connected  # which workers are, or were since the last look
        self._most = job["spec"]["script"]["queue"]
        self._wanted: set[int] = set()
        self._address = ""
        self._closed = False
        self._lock = threading.RLock()  # held while the HTCJob is looked at, changed or deleted
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._trouble = ""
        self._first, self._made = 0, -1  # the number of job 0, and the highest job that HTCondor has made
        self._forget()

    def _forget(self) -> None:
        self.name, self._uid = "", ""
        self._first, self._made = self.next, -1
        self._objects: tuple[dict, dict] = ({}, {})
        self._status: dict = {}
        self._seen = ""  # the version of the HTCJob whose jobs were looked at
        self._states: dict[int, str] = {}  # of jobs that have ended
        self._came: set[int] = set()  # the numbers of those that have ever been connected
        self._crashes = 0  # jobs that have failed without, since a worker was last connected

    @property
    def next(self) -> int:
        """The first number whose job HTCondor has not made, as far as is known."""
        return self._first + self._made + 1

    def try_out(self) -> None:
        """Raises what the cluster would refuse, before anything is made."""
        job, secret = self._compose({0})
        self._post(self._cluster.jobs(), job, {"fieldValidation": "Strict", "dryRun": "All"})
        try:
            self._post(self._cluster.secrets(), secret, {"dryRun": "All"})
        except Refused as e:
            if e.lacks_right:
                why = "HTCCluster needs the right to create Secrets, in which the TLS keys travel"
                raise Error(f"{why}: {e}") from None
            raise

    def want(self, numbers: set[int], address: str) -> None:
        """Says which workers are wanted, and where their scheduler is. It does not wait."""
        self._wanted, self._address = numbers, address
        if self._thread is None and numbers and not self._closed:
            self._thread = threading.Thread(target=self._run, name="htc workers", daemon=True)
            self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """Deletes the HTCJob, and makes none any more."""
        self._closed = True
        self._wake.set()
        with self._lock:
            try:
                self._delete()
            except Error as e:
                print(
                    f"The HTCJob {self.name} could not be deleted: {e}. Its workers end when they have not found the "
                    f"scheduler for a minute; to delete it: kubectl delete htcjob {self.name}", file=sys.stderr,
                )

    def summary(self) -> str:
        """Returns how the HTCJob stands, and why it waits."""
        if not self.name:
            return self._trouble or "no HTCJob was made yet"
        words = (word for word in ("idle", "held", "running", "failed") if self._status.get(word))
        counts = (f"{self._status[word]} {word}" for word in words)
        why = self._trouble or (self._status.get("message", "") if self._status.get("reason") else "")
        return f"{self.name}: " + (", ".join(counts) or "not in HTCondor yet") + (f" ({why})" if why else "")

    # What follows runs in the thread, but for _delete.

    def _run(self) -> None:
        patience = Patience()
        while not self._closed:
            try:
                with self._lock:
                    if not self._closed:
                        self._keep(self._wanted)
                self._trouble = ""
                patience.answered()
            except Exception as e:
                if isinstance(e, Refused) and patience.bears(e):
                    self._trouble = str(e)
                else:
                    self._failed(e if isinstance(e, Error) else Error(f"{self.name}: {type(e).__name__}: {e}"))
                    return
            self._wake.wait(_PAUSE)
            self._wake.clear()

    def _keep(self, wanted: set[int]) -> None:
        if not wanted:
            self._delete()
            return
        if not self.name:
            self._objects = self._compose(wanted)
            self.name, self._first = self._objects[0]["metadata"]["name"], min(wanted)
        if not self._uid:
            self._create()
        try:
            job = self._cluster.object("GET", self._cluster.jobs(self.name))
        except Refused as e:
            if e.status == 404:
                raise Error(f"the HTCJob {self.name} was deleted, and its workers with it") from None
            raise
        if job["metadata"]["uid"] != self._uid:
            raise Error(f"the HTCJob {self.name} was replaced by another")
        self._status = job.get("status", {})
        if why := verdict.never_sent(job):
            raise Error(f"{self.name}: {why}")
        if self._status.get("phase") in verdict.ENDED:
            raise self._error()
        procs = {number - self._first for number in wanted}
        if max(procs) >= self._most:
            raise Error(
                f"{self.name} has started {self._most} workers, and has no more: scale(0) and then scale again, or "
                "give HTCCluster a larger starts="
            )
        if connected := self._connected():
            self._crashes = 0
            self._came |= connected
            self._made = max(self._made, max(connected) - self._first)  # before HTCondor's word has come here
        if job["metadata"]["resourceVersion"] != self._seen:
            ended = self._look(max(procs)) & procs
            self._seen = job["metadata"]["resourceVersion"]
            if ended:
                self._ended([proc + self._first for proc in ended])
        change = verdict.workers(job, procs, self._states, max(self._made, *procs), self._crashes)
        if change:
            self._cluster.read("PATCH", self._cluster.jobs(self.name), body=change)

    def _look(self, last: int) -> set[int]:
        """Returns the jobs that have ended since the last look; last is the last that is wanted."""
        ended = set()
        low = next((proc for proc in range(last + 1) if proc not in self._states), last + 1)
        # HTCondor may have made a few more than are wanted, in place of those that were retired.
        query = {"from": low, "limit": 2 * (max(last, self._made) + 1 - low) + 100}
        for line in self._cluster.lines(self._cluster.output(self.name, "/procs"), query):
            proc, state = line["proc"], line["state"]
            if state != "waiting":
                self._made = max(self._made, proc)
            if state not in ("done", "failed") or proc in self._states:
                continue
            self._states[proc] = state
            ended.add(proc)
            if state == "failed" and line.get("reason") != "Removed" and proc + self._first not in self._came:
                self._crashes += 1
        return ended

    def _error(self) -> Error:
        """Returns why the HTCJob has ended, with a worker's words if one has failed."""
        line = next((f for f in self._status.get("failures", []) if f.get("reason") != "Removed"), None)
        if line and "proc" in line:
            return JobError(self.name, line)
        return Error(f"{self.name} is {self._status['phase']}: {self._status.get('message') or 'no worker is left'}")

    def _create(self) -> None:
        """Creates the HTCJob, and the Secret that belongs to it. Asked again, it goes on where it broke off."""
        job, secret = self._objects
        own = self._cluster.jobs(self.name)
        uid = json.loads(self._post(self._cluster.jobs(), job, {"fieldValidation": "Strict"}, own))["metadata"]["uid"]
        owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": self.name, "uid": uid}
        secret["metadata"]["ownerReferences"] = [owner]
        self._post(self._cluster.secrets(), secret, {})
        self._uid = uid

    def _delete(self) -> None:
        if not self.name:
            return
        only = {"preconditions": {"uid": self._uid}} if self._uid else {}
        try:
            self._cluster.read("DELETE", self._cluster.jobs(self.name), body=only)
        except Refused as e:
            if e.status not in (404, 409):  # there is none, or it is another's by now
                raise
        self._forget()

    def _compose(self, wanted: set[int]) -> tuple[dict, dict]:
        """Returns the HTCJob whose job 0 is the first of the wanted workers, and the Secret that it reads."""
        job = copy.deepcopy(self._template)
        name = f"{job['metadata']['name']}-{secrets.token_hex(4)}"
        job["metadata"]["name"] = name
        spec = job["spec"]
        spec.update(verdict.bounds(len(wanted), 0))
        spec["script"]["args"] = ["{{proc}}", str(min(wanted)), self._address, *spec["script"]["args"]]
        ours = [{"name": key, "secretKeyRef": {"name": name, "key": key}} for key in self._secret]
        spec["inputs"] = [*spec.get("inputs", []), *ours]
        metadata = {"name": name, "labels": {"htc.cern.ch/jobs": "true"}}
        return job, {"metadata": metadata, "immutable": True, "stringData": self._secret}

    def _post(self, path: str, body: dict, query: dict, existing: str = "") -> bytes:
        """Creates an object. One that is there already is ours, of a request whose answer was lost."""
        try:
            return self._cluster.read("POST", path, query, body)
        except Refused as e:
            if e.status != 409:
                raise
            return self._cluster.read("GET", existing) if existing else b""
