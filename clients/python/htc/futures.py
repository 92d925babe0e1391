"""The jobs of an HTCJob as futures."""

from __future__ import annotations

import concurrent.futures
import math
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import progress, verdict
from .cluster import Cluster, Patience, Refused
from .errors import Error
from .types import HTCJobStatus

# Seconds between two looks at an HTCJob: the first, after something has changed, and the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0
# What get-output of htcd calls them, too, unless the job has left files of these names.
_STREAMS = {"_condor_stdout": "stdout", "_condor_stderr": "stderr"}


class Future(concurrent.futures.Future):
    """One job of an HTCJob. Its result is what the function returns, or the standard output of a script."""

    def __init__(self, of: Futures, proc: int):
        super().__init__()
        self._of = of
        self.proc = proc
        self.state = "waiting"  # then idle, running, held, done or failed, as htcd says

    def __repr__(self) -> str:
        return f"<job {self.proc} of {self._of.name}: {'cancelled' if self.cancelled() else self.state}>"

    def __reduce__(self):
        raise TypeError(f"job {self.proc} of {self._of.name} is followed here alone: pass its result()")

    def running(self) -> bool:
        return self.state == "running" and not self.done()

    def cancel(self) -> bool:
        """Removes the job from HTCondor, unless it has ended."""
        return self._of._cancel([self])

    def log(self, stream: str = "stdout") -> str:
        """Returns what the job has written to stdout or stderr, also while it runs."""
        path = self._of.cluster.output(self._of.name)
        return self._of.cluster.read("GET", path, {"proc": self.proc, "stream": stream}).decode("utf-8", "replace")

    def files(self, directory: str | os.PathLike) -> list[Path]:
        """Copies all files that the ended job has left into a directory, and returns their paths."""
        copied, root = {}, Path(directory).resolve()
        for _, path, content in self._of.cluster.files(self._of.name, {"proc": self.proc}):
            target = (root / path).resolve()
            if not target.is_relative_to(root):
                raise Error(f"job {self.proc} of {self._of.name} has left {path!r}, which would be written elsewhere")
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "wb") as out:
                shutil.copyfileobj(content, out)
            copied[path] = target
        taken = {path.partition("/")[0] for path in copied}
        for stream, name in _STREAMS.items():
            if stream in copied and name not in taken:
                copied[stream] = copied[stream].replace(root / name)
        return list(copied.values())


class Futures(Sequence):
    """The jobs of an HTCJob, in the order of their items."""

    def __init__(self, cluster: Cluster, job: dict, count: int, file: str, read: Callable[[bytes], Any]):
        self.cluster = cluster
        self.name = job["metadata"]["name"]
        self._status: HTCJobStatus = job.get("status", {})  # as last seen
        self.changed = threading.Event()  # set at each look
        self._uid = job["metadata"]["uid"]
        self._file, self._read = file, read  # which file of a job is its result, and what makes it a value
        self._trouble = ""  # why the last look has failed
        self._asked = ""  # the last change that removes jobs which were cancelled
        self._kept = ""  # why that was refused
        self._removing = -math.inf  # when cancel last had jobs removed
        self._later: threading.Timer | None = None  # which has those removed that were cancelled right after
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._futures = [Future(self, proc) for proc in range(count)]
        threading.Thread(target=self._follow, name=f"htc {self.name}", daemon=True).start()

    def __len__(self) -> int:
        return len(self._futures)

    def __getitem__(self, i):
        return self._futures[i]

    def __repr__(self) -> str:
        return self.summary()

    def __reduce__(self):
        raise TypeError(f"the jobs of {self.name} are followed here alone: pass their results()")

    def results(self, timeout: float | None = None) -> list:
        """Waits for all jobs and returns their results.

        The first job that fails raises its JobError at once. The others go on: cancel() removes them.
        """
        done, left = concurrent.futures.wait(self, timeout, concurrent.futures.FIRST_EXCEPTION)
        for future in sorted(done, key=lambda f: f.proc):
            future.result()
        if left:
            raise concurrent.futures.TimeoutError(self.summary())
        return [future.result() for future in self]

    def status(self) -> HTCJobStatus:
        """Returns the status of the HTCJob as it is now."""
        return self.cluster.object("GET", self.cluster.jobs(self.name)).get("status", {})

    def done(self) -> bool:
        return all(future.done() for future in self)

    def cancel(self) -> bool:
        """Removes all jobs that have not ended from HTCondor."""
        return self._cancel(self._futures)

    def delete(self) -> None:
        """Deletes the HTCJob, with its jobs in HTCondor and its output."""
        self.cluster.read("DELETE", self.cluster.jobs(self.name), body={"preconditions": {"uid": self._uid}})

    def progress(self) -> None:
        """Shows how far the jobs are until all have ended."""
        progress.show(self)

    def counts(self) -> dict[str, int]:
        return Counter("cancelled" if f.cancelled() else f.state for f in self)

    def summary(self) -> str:
        """Returns a line about all jobs, with the reason why they wait or what has gone wrong."""
        counts = self.counts()
        order = ("waiting", "idle", "held", "running", "done", "failed", "cancelled")
        text = f"{self.name}: " + ", ".join(f"{counts[state]} {state}" for state in order if counts[state])
        why = self._trouble or self._kept or (self._status.get("message", "") if self._status.get("reason") else "")
        return text + (f" ({why})" if why else "")

    # What follows runs in a thread of its own, until every job has ended.

    def _follow(self) -> None:
        seen, pause, patience = "", _FIRST_PAUSE, Patience()
        try:
            while True:
                began = time.monotonic()
                try:
                    now, pending = self._look(seen)
                    self._trouble = ""
                    patience.answered()
                except Refused as e:
                    if not patience.bears(e):
                        again = f"the jobs go on, and htc.attach({self.name!r}) follows them again"
                        raise Error(f"{self.name} cannot be followed: {e}; {again}") from e
                    now, pending, self._trouble = seen, False, str(e)
                self.changed.set()
                if self.done() and not (self._unwanted() and (self._trouble or self._later)):
                    return
                pause = _FIRST_PAUSE if now != seen or pending else min(1.5 * pause, _LONGEST_PAUSE)
                seen = now
                # Of a large HTCJob a look takes its time: most of the time is left to others.
                self._wake.wait(max(pause, 4 * (time.monotonic() - began)))
                self._wake.clear()
        except Exception as e:
            for future in self:
                self._end(future, error=e if isinstance(e, Error) else Error(f"{self.name}: {type(e).__name__}: {e}"))
            self.changed.set()

    def _look(self, seen: str) -> tuple[str, bool]:
        """Ends the futures whose jobs have ended. Returns the HTCJob's version, and whether output is on its way."""
        try:
            job = self.cluster.object("GET", self.cluster.jobs(self.name))
        except Refused as e:
            if e.status != 404:
                raise
            job = {"metadata": {"uid": "none"}}
        if job["metadata"]["uid"] != self._uid:
            raise Error(f"the HTCJob {self.name} was deleted")
        self._status = job.get("status", {})
        try:
            self._remove(job)
        except Refused as e:
            if e.passing or e.status == 401:
                raise
            # The others are followed all the same.
        version = job["metadata"]["resourceVersion"]
        left = next((f.proc for f in self if not f.done()), None)
        if left is None or version == seen:
            return version, False
        if why := verdict.never_sent(job):
            raise Error(f"{self.name}: {why}")
        ready, pending = [], False
        for line in self.cluster.lines(self.cluster.output(self.name, "/procs"), {"from": left}):
            if line["proc"] >= len(self):
                continue  # somebody has made the HTCJob longer
            future = self._futures[line["proc"]]
            future.state = line["state"]
            if future.done() or line["state"] not in ("done", "failed"):
                continue
            if not verdict.is_final(line, self._status):
                pending = True
            elif error := verdict.error_of(self.name, line, self._status):
                self._end(future, error=error)
            else:
                ready.append(future)
        self._bring({future.proc: future for future in ready})
        # While output is on its way, the same version of the HTCJob is looked at again.
        return "" if pending else version, pending

    def _bring(self, wanted: dict[int, Future]) -> None:
        """Reads the results of jobs that have succeeded: at once where they lie close together, else each by itself."""
        if len(wanted) > 1 and len(wanted) > (max(wanted) - min(wanted)) / 10:
            self._take({"from": min(wanted)}, wanted, max(wanted))
        for proc, future in list(wanted.items()):
            try:
                self._take({"proc": proc}, wanted, proc)
                error = (
                    f"job {proc} of {self.name} has succeeded, and left no {self._file}: a function that ends Python "
                    "(sys.exit, os._exit) returns nothing"
                )
            except Refused as e:
                if e.passing:
                    raise
                error = str(e)
            if proc in wanted:
                self._end(future, error=Error(error))

    def _take(self, query: dict, wanted: dict[int, Future], last: int) -> None:
        """Ends the futures whose results are in an archive, and takes them out of wanted."""
        for proc, path, content in self.cluster.files(self.name, {**query, "file": self._file}):
            if proc > last:
                return
            if path != self._file or proc not in wanted:
                continue
            text, future = content.read(), wanted.pop(proc)
            try:
                value = self._read(text)
            except BaseException as e:  # whatever an object's own code raises, such as SystemExit
                what = f"the result of job {proc} of {self.name}"
                self._end(future, error=Error(f"{what} cannot be read here: {type(e).__name__}: {e}"))
            else:
                self._end(future, value=value)
            if proc == last:
                return

    def _end(self, future: Future, value=None, error: Exception | None = None) -> None:
        try:
            if error is not None:
                future.state = "failed"
                future.set_exception(error)
            else:
                future.set_result(value)
        except concurrent.futures.InvalidStateError:
            pass  # it was cancelled meanwhile
        except BaseException:
            pass  # a function of add_done_callback raises what would end this thread unseen, such as SystemExit

    def _cancel(self, futures: list[Future]) -> bool:
        with self._lock:
            for future in futures:
                # Its own cancel, which removes the job, would come here again.
                if not future.done() and concurrent.futures.Future.cancel(future):
                    future.set_running_or_notify_cancel()
            if not (self._later or self._is_soon()):
                self._removing = time.monotonic()
                self._wake.set()
                self._remove(self.cluster.object("GET", self.cluster.jobs(self.name)))
        return all(future.cancelled() for future in futures)

    def _is_soon(self) -> bool:
        """Reports whether jobs are being removed one after the other. Then the next ones are removed together."""
        if time.monotonic() - self._removing > _FIRST_PAUSE:
            return False
        later = threading.Timer(_FIRST_PAUSE, self._remove_later)  # for which the program waits before it ends
        try:
            later.start()
        except RuntimeError:  # the program ends
            return False
        self._later = later
        return True

    def _remove_later(self) -> None:
        with self._lock:
            self._removing, self._later = time.monotonic(), None
            try:
                self._remove(self.cluster.object("GET", self.cluster.jobs(self.name)))
            except Refused as e:
                self._trouble = str(e)
        self._wake.set()

    def _unwanted(self) -> list[int]:
        return [future.proc for future in self if future.cancelled()]

    def _remove(self, job: dict) -> None:
        """Has the jobs removed that were cancelled: once they are in HTCondor, or all when no other is open."""
        with self._lock:
            unwanted = self._unwanted()
            if not unwanted or job["metadata"]["uid"] != self._uid:
                return  # or it is another HTCJob of that name
            # What others have cancelled stays so: HTCondor may not have made those jobs yet.
            patch = verdict.removal(job, sorted({*unwanted, *verdict.cancelled(job, len(self))}), self.done())
            if patch is None or str(patch) == self._asked:
                return
            try:
                self.cluster.read("PATCH", self.cluster.jobs(self.name), body=patch)
                self._asked, self._kept = str(patch), ""
            except Refused as e:
                if not e.passing and e.status != 401:  # else it is asked again
                    self._asked, self._kept = str(patch), f"jobs that were cancelled go on: {e}"
                raise
