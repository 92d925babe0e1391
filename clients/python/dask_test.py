"""HTCCluster with workers on this machine, for `make test-dask`.

It needs Dask, so it has a name that `python3 -m unittest` does not look for.
"""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import htc
from test_workers import LIMIT, Fake


class Pool:
    """Runs the jobs of the fake's HTCJob on this machine, as HTCondor would."""

    def __init__(self, cluster, directory):
        self.cluster, self.directory, self.running = cluster, Path(directory), {}

    def start(self, proc):
        job, secret = self.cluster.job, list(self.cluster.secrets_.values())[-1]
        (self.directory / "script").write_text(job["spec"]["script"]["source"])
        for file, text in secret["stringData"].items():
            (self.directory / file).write_text(text)
        arguments = [argument.replace("{{proc}}", str(proc)) for argument in job["spec"]["script"]["args"]]
        self.running[proc] = subprocess.Popen(
            [sys.executable, self.directory / "script", *arguments], cwd=self.directory,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))},
        )

    def evict(self, proc):
        self.running[proc].kill()
        self.running[proc].wait()


class Dask(unittest.TestCase):
    def setUp(self):
        self.api = Fake()
        for target, value in ("htc.dask.connect", lambda _: self.api), ("htc.workers._PAUSE", 0.05):
            patch = mock.patch(target, value)
            patch.start()
            self.addCleanup(patch.stop)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.pool = Pool(self.api, directory.name)
        self.addCleanup(lambda: [worker.kill() or worker.wait() for worker in self.pool.running.values()])

    def cluster(self, n=0, **options):
        cluster = htc.HTCCluster(n, image="dask", host="127.0.0.1", dashboard_address="127.0.0.1:0", **options)
        self.addCleanup(cluster.close, timeout=LIMIT)
        return cluster

    def until(self, true):
        deadline = time.monotonic() + LIMIT
        while not true():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_a_map_ends_right_while_workers_are_evicted_and_retired(self):
        with self.cluster(2, memory="1Gi") as cluster, cluster.get_client() as client:
            self.api.until(lambda api: api.secrets_)
            for proc in 0, 1:
                self.pool.start(proc)
            cluster.wait_for_workers(2, LIMIT)
            futures = client.map(slow_square, range(40))
            self.pool.evict(0)
            self.pool.start(0)
            self.assertEqual(client.gather(futures), [i * i for i in range(40)])
            cluster.wait_for_workers(2, LIMIT)
            self.assertEqual(cluster.observed, {0, 1})
            cluster.scale(1)
            self.assertEqual(self.pool.running[1].wait(LIMIT), 0, "a retired worker ends by itself")
            self.api.until(lambda api: api.cancelled == "1/1" and api.parallelism() == [1])
            self.assertEqual(client.gather(futures[3]), 9, "what only it had was moved")
        self.assertEqual(self.api.jobs_, {})
        self.assertEqual(self.pool.running[0].wait(LIMIT), 0)

    def test_dask_adapts_the_number_of_workers(self):
        with self.cluster() as cluster, cluster.get_client() as client:
            cluster.adapt(minimum=0, maximum=3, interval="50ms", wait_count=2, target_duration="500ms")
            futures = client.map(slow_square, range(20))
            self.api.until(lambda api: api.parallelism() == [3])
            for proc in range(3):
                self.pool.start(proc)
            self.assertEqual(sum(client.gather(futures)), sum(i * i for i in range(20)))
            del futures
            self.api.until(lambda api: api.deleted)

    def test_a_worker_is_a_job_for_those_who_come_from_dask_jobqueue(self):
        cluster = self.cluster()
        cluster.scale(jobs=2)
        self.api.until(lambda api: api.parallelism() == [2])
        adaptive = cluster.adapt(minimum_jobs=1, maximum_jobs=3)
        self.assertEqual((adaptive.minimum, adaptive.maximum), (1, 3))
        with self.assertRaisesRegex(htc.Error, "100001 workers: want"):
            cluster.adapt(maximum_jobs=100001)
        with self.assertRaisesRegex(htc.Error, "-1 workers: want"):
            cluster.scale(jobs=-1)

    def test_a_worker_whose_job_has_ended_is_replaced(self):
        cluster = self.cluster(2)
        self.api.until(lambda api: api.secrets_)
        self.api.line(0, state="failed", reason="ExitCode")
        self.until(lambda: set(cluster.worker_spec) == {1, 2})
        self.api.until(lambda api: api.parallelism() == [2])

    def test_a_worker_that_was_there_between_two_looks_was_connected(self):
        with mock.patch("htc.dask.HTCCluster.observed", set()):
            cluster = self.cluster(1)
            self.api.until(lambda api: api.secrets_)
            self.pool.start(0)
            self.until(lambda: cluster._jobs._came == {0})

    def test_when_the_htcjob_has_failed_waiting_and_scaling_raise_why(self):
        cluster = self.cluster(1)
        self.api.until(lambda api: api.secrets_)
        failure = {"proc": 0, "message": "exit code 1", "stderr": "No module named distributed"}
        with mock.patch("sys.stderr"):
            self.api.status = {"phase": "Failed", "clusterId": 7, "failures": [failure]}
            with self.assertRaisesRegex(htc.JobError, "No module named distributed"):
                cluster.wait_for_workers(1, LIMIT)
        with self.assertRaisesRegex(htc.JobError, "No module named distributed"):
            cluster.scale(2)

    def test_waiting_says_how_far_the_workers_are(self):
        cluster = self.cluster(1)
        self.api.status = {"clusterId": 7, "attempt": 1, "idle": 1, "reason": "Idle", "message": "no slot"}
        self.until(lambda: "no slot" in cluster._jobs.summary())
        with self.assertRaisesRegex(TimeoutError, r"0 of 1 workers: dask-\w+: 1 idle \(no slot\)"):
            cluster.wait_for_workers(1, 0)

    def test_what_cannot_be_is_refused_in_words(self):
        cluster = self.cluster(1, starts=100)
        for n in -1, 100000, 1.5, "many", None:
            with self.assertRaisesRegex(htc.Error, "workers: want a whole number from 0 to 100"):
                cluster.scale(n)
        for limits in {"minimum": -1}, {"maximum": 101}:
            with self.assertRaisesRegex(htc.Error, "workers: want a whole number from 0 to 100"):
                cluster.adapt(**limits)
        for words, options in {
            "-1 workers": {"n_workers": -1},
            "cpus is 0": {"cpus": 0},
            "memory is 'much'": {"memory": "much"},
            r"queue is not given itself: use starts=": {"queue": 3},
            "no field requirement: do you mean requirements": {"requirement": "true"},
            "name 'A_B'": {"name": "A_B"},
            "contact_address is 'dask:8786': want one such as 'tls:": {"contact_address": "dask:8786"},
            "worker_options is '--x': want a list": {"worker_options": "--x"},
            "port is 70000": {"port": 70000},
            "cannot be started with host='192.0.2.1'": {"host": "192.0.2.1"},
        }.items():
            with self.assertRaisesRegex(htc.Error, words):
                htc.HTCCluster(**{"image": "dask", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", **options})
        self.assertEqual(len(self.api.jobs_), 1)

    def test_the_interpreters_end_deletes_the_htcjob(self):
        code = """
import atexit, test_workers
api = test_workers.Fake()
atexit.register(lambda: print("left:", len(api.jobs_), "deleted:", len(api.deleted)))
import htc.dask
htc.dask.connect = lambda _: api
cluster = htc.HTCCluster(1, image="dask", host="127.0.0.1", dashboard_address="127.0.0.1:0")
api.until(lambda api: api.secrets_)
raise KeyboardInterrupt
"""
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT)
        self.assertIn("left: 0 deleted: 1", said.stdout, said.stderr)


def slow_square(x):
    time.sleep(0.05)
    return x * x


if __name__ == "__main__":
    unittest.main()
