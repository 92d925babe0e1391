"""A cluster of Dask whose workers are jobs of an HTCJob."""

from __future__ import annotations

import asyncio
import logging
import math
import operator
import queue
import re
import secrets
import sys
import threading
import time
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any

from .cluster import Cluster, connect
from .errors import Error
from .submission import check, check_name, requests
from .types import GROUP, KIND, VERSION, HTCJobSpec
from .workers import Workers

try:
    from dask.utils import parse_bytes, parse_timedelta
    from distributed import Scheduler, Security
    from distributed.core import Status
    from distributed.deploy.spec import SpecCluster
    from distributed.diagnostics.plugin import SchedulerPlugin
    from distributed.utils import NoOpAwaitable
except ImportError as e:
    raise Error(
        f"HTCCluster needs Dask: pip install distributed cryptography, or Debian's python3-distributed and "
        f"python3-cryptography ({e})"
    ) from None

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Fields of the spec that HTCCluster fills.
_OURS = {
    "script": "image=, command= and worker_options=", "resources": "memory=, cpus=, disk= and gpus=",
    "queue": "starts=", "parallelism": "scale() or adapt()", "maxFailures": "starts=", "suspend": "scale(0)",
    "items": "worker_options=", "itemsFrom": "worker_options=", "parameters": "worker_options=",
}


class HTCCluster(SpecCluster):
    """Workers in HTCondor for a scheduler of Dask that runs here: see docs/python.md.

        cluster = htc.HTCCluster(image="example.org/dask:2024.12", memory="2Gi")
        cluster.adapt(minimum=0, maximum=100)
        client = cluster.get_client()

    Workers connect to the scheduler at host and port, or at contact_address where that is another; the connections are
    encrypted, and both sides prove that they belong to this cluster. starts is how many workers there can be one after
    the other, until scale(0). Any other field of an HTCJob's spec can be given by its name, such as requirements.
    """

    def __init__(
        self,
        n_workers: int = 0,
        *,
        image: str,
        command: str = "python3",
        memory: int | str | None = None,
        cpus: int = 1,
        disk: int | str | None = None,
        gpus: int | str | None = None,
        worker_options: list[str] | tuple[str, ...] = (),
        host: str | None = None,
        port: int = 0,
        contact_address: str | None = None,
        security: Security | None = None,
        dashboard_address: str = "127.0.0.1:8787",
        starts: int = 10000,
        name: str = "dask",
        namespace: str | None = None,
        asynchronous: bool = False,
        loop: Any = None,
        **fields: Unpack[HTCJobSpec],
    ):
        check(fields, _OURS)
        check_name(name, 200)
        self._starts = starts
        self._check_count(n_workers)
        if contact_address and not re.fullmatch(r"tls://.+:\d+", contact_address):
            raise Error(f"contact_address is {contact_address!r}: want one such as 'tls://dask.example.org:8786'")
        if not isinstance(port, int) or not 0 <= port < 1 << 16:
            raise Error(f"port is {port!r}: want a number from 0, for any free port, to 65535")
        self.failure: Error | None = None
        self._contact = contact_address
        self._spec_lock = threading.RLock()  # the loop replaces workers while others scale
        security = security or _temporary()
        script = resources.files(__package__).joinpath("worker.py").read_text(encoding="utf-8")
        if not isinstance(cpus, int) or cpus < 1:
            raise Error(f"cpus is {cpus!r}: want a whole number from 1, as a worker has a thread for each")
        if isinstance(worker_options, str):
            raise Error(f"worker_options is {worker_options!r}: want a list, such as ['--worker-port', '40000:40100']")
        options = ["--nthreads", str(cpus)]
        if memory is not None:
            options += ["--memory-limit", str(_bytes(memory))]
        spec: dict[str, Any] = {
            "ttlSecondsAfterFinished": 3600, "onMaxFailures": "RemoveAll", **fields,
            "resources": requests(memory=memory, cpus=cpus, disk=disk, gpus=gpus),
            "script": {
                "image": image, "command": command, "source": script, "queue": starts,
                "args": [*options, *worker_options],
            },
        }
        job = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": name}, "spec": spec}
        cluster = connect(namespace)
        self._jobs = Workers(cluster, job, _files(security), self._tell_ended, self._fail, self._connected)
        self._jobs.try_out()
        self._arrivals: queue.SimpleQueue = queue.SimpleQueue()  # the names of workers since they were last asked for
        host = host or _own_address(cluster)
        scheduler = {
            "protocol": "tls://", "host": host, "port": port, "security": security,
            "dashboard": True, "dashboard_address": dashboard_address, "plugins": [_Arrivals(self._arrivals)],
        }
        try:
            super().__init__(
                scheduler={"cls": Scheduler, "options": scheduler},
                worker={"options": {"nthreads": cpus, "memory_limit": memory}},
                workers={number: {} for number in range(n_workers)},
                asynchronous=asynchronous, loop=loop, security=security, silence_logs=logging.WARN,
                name=f"{name}-{secrets.token_hex(4)}",
            )
        except RuntimeError as e:
            why: BaseException = e
            while why.__cause__:
                why = why.__cause__
            raise Error(f"the scheduler of Dask cannot be started with host={host!r} and port={port}: {why}") from e
        except BaseException:  # also Ctrl-C
            self._jobs.close()
            raise

    def scale(self, n: int = 0, memory: int | str | None = None, cores: int | None = None, *, jobs: int = 0):
        """Asks for n workers, or for as many as have so much memory, or so many cores, together.

        jobs is n, as each worker is a job: so dask-jobqueue calls it.
        """
        if jobs:
            n = max(n, self._check_count(jobs))
        if memory is not None:
            n = max(n, math.ceil(parse_bytes(memory) / self._memory_per_worker()))
        if cores is not None:
            n = max(n, math.ceil(cores / self._threads_per_worker()))
        n = self._check_count(n)
        if n and self.failure:
            raise self.failure
        with self._spec_lock:
            # Those go first that have not come yet, and of these the last ones.
            here = self.observed
            surplus = sorted(self.worker_spec, key=lambda number: (number in here, -number))
            for number in surplus[: max(len(surplus) - n, 0)]:
                del self.worker_spec[number]
            self._i = self._next()
            while len(self.worker_spec) < n:
                self.worker_spec.update(self.new_worker_spec())
        self.loop.add_callback(self._correct_state)
        return NoOpAwaitable() if self.asynchronous else None

    scale_up = scale

    async def scale_down(self, workers):
        with self._spec_lock:
            for name in workers:
                self.worker_spec.pop(_number(name), None)
        await self

    def adapt(
        self, *args, minimum: int = 0, maximum: float = math.inf, minimum_jobs: int | None = None,
        maximum_jobs: int | None = None, **kwargs,
    ):
        """Lets Dask choose how many workers there are: see distributed.Adaptive. Each worker is a job."""
        minimum = minimum if minimum_jobs is None else minimum_jobs
        maximum = maximum if maximum_jobs is None else maximum_jobs
        if maximum == math.inf:
            maximum = self._starts
        self._check_count(minimum)
        return super().adapt(*args, minimum=minimum, maximum=self._check_count(maximum), **kwargs)

    def wait_for_workers(self, n_workers: int, timeout: float | str | None = None):
        """Waits until so many workers are connected. It raises what has gone wrong with their HTCJob."""
        return self.sync(self._wait_for_workers, n_workers, parse_timedelta(timeout))

    @property
    def observed(self) -> set:
        workers = list(self.scheduler.workers.values()) if self.scheduler else []
        return {_number(worker.name) for worker in workers}

    @property
    def dashboard_link(self) -> str:
        # The dashboard asks for no certificate, so it is on another address than the scheduler.
        link = super().dashboard_link
        host = self.scheduler_spec["options"]["dashboard_address"].rpartition(":")[0]
        return re.sub(r"//[^/]*:(\d+)", rf"//{host}:\1", link) if host else link

    def _next(self) -> int:
        """Returns from which number on new_worker_spec looks for one that is free."""
        return max({self._jobs.next - 1, *_numbers(self.observed)}) + 1

    async def _correct_state_internal(self) -> None:
        async with self._lock:
            self._correct_state_waiting = None
            wanted = set(self.worker_spec)
            self.workers = {number: NoOpAwaitable() for number in wanted}
            if self.status != Status.running:
                return
            leaving = [
                address for address, worker in self.scheduler.workers.items()
                if isinstance(number := _number(worker.name), int) and number not in wanted
            ]
            if leaving:
                await self.scheduler_comm.retire_workers(workers=leaving, close_workers=True, remove=True)
            self._jobs.want(wanted, self._contact or self.scheduler.address)

    async def _wait_for_workers(self, n_workers: int, timeout: float | None) -> None:
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while len(self.scheduler.workers) < n_workers:
            if self.failure:
                raise self.failure
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.scheduler.workers)} of {n_workers} workers: {self._jobs.summary()}")
            await asyncio.sleep(0.1)

    async def _close(self):
        self.worker_spec.clear()
        self._jobs.close()  # not in another thread: none can be started while the interpreter exits
        # Dask would complain of each worker that is connected while its scheduler ends.
        with _silence(logging.getLogger("distributed").handlers):
            await super()._close()

    # What follows is called from the thread of the HTCJob.

    def _connected(self) -> set[int]:
        here = self.observed
        while not self._arrivals.empty():  # a task may have killed them at once
            here.add(_number(self._arrivals.get()))
        return _numbers(here)

    def _tell_ended(self, numbers: list[int]) -> None:
        self.loop.add_callback(self._replace, numbers)

    def _replace(self, numbers: list[int]) -> None:
        """Puts new workers in the places of those whose jobs have ended though they were wanted."""
        with self._spec_lock:
            self._i = self._next()
            for number in numbers:
                if self.worker_spec.pop(number, None) is not None:
                    self.worker_spec.update(self.new_worker_spec())
        self._correct_state()

    def _fail(self, error: Error) -> None:
        self.failure = error
        print(f"HTCCluster asks for no more workers: {error}", file=sys.stderr)
        self.loop.add_callback(self._stop_adapting)

    def _stop_adapting(self) -> None:
        if self._adaptive:
            self._adaptive.stop()

    def _check_count(self, n) -> int:
        try:
            if 0 <= operator.index(n) <= self._starts:
                return operator.index(n)
        except TypeError:
            pass
        raise Error(f"{n!r} workers: want a whole number from 0 to {self._starts}, which is what starts= says")


class _Arrivals(SchedulerPlugin):
    def __init__(self, names: queue.SimpleQueue):
        self._names = names

    def add_worker(self, scheduler, worker):
        self._names.put(scheduler.workers[worker].name)


def _numbers(workers: set) -> set[int]:
    return {number for number in workers if isinstance(number, int)}


def _number(name: Any) -> Any:
    """Returns the number of a worker of this cluster by its name, and any other name as it is."""
    own = re.fullmatch(r"(\d+)-[0-9a-f]{8}", str(name))
    return int(own[1]) if own else name


@contextmanager
def _silence(handlers: list[logging.Handler]):
    def none(record):
        return False

    for handler in handlers:
        handler.addFilter(none)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(none)


def _own_address(cluster: Cluster) -> str:
    try:
        return cluster.own_address()
    except OSError as e:
        raise Error(f"from where this machine reaches the Kubernetes API is not known ({e}): give host=") from None


def _bytes(memory: int | str) -> int:
    try:
        return parse_bytes(memory)
    except (ValueError, KeyError, AttributeError):
        raise Error(f"memory is {memory!r}: want a number of bytes, or a text such as '2Gi'") from None


def _temporary() -> Security:
    try:
        return Security.temporary()
    except ImportError as e:
        raise Error(f"HTCCluster makes TLS keys with cryptography: pip install cryptography ({e})") from None


def _files(security: Security) -> dict[str, str]:
    """Returns the files that a worker needs to prove that it is one, by their names."""
    worker = security.get_tls_config_for_role("worker")
    files = {}
    for part, key in {"ca_file": "dask-ca-file", "cert": "dask-cert", "key": "dask-key"}.items():
        value = worker[part] or worker["cert"]  # which may have the key as well
        if not value:
            raise Error(f"security= has no {part} for workers: HTCCluster needs TLS; without security= it makes keys")
        if "\n" not in value:
            with open(value, encoding="utf-8") as f:
                value = f.read()
        files[key] = value
    return files
