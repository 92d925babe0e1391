import io
import json
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock
from urllib.parse import unquote

import htc
from htc import verdict
from htc.cluster import OUTPUT, Cluster, Refused
from htc.types import GROUP, VERSION
from htc.workers import Workers

JOBS = f"/apis/{GROUP}/{VERSION}/namespaces/ns/htcjobs"
SECRETS = "/api/v1/namespaces/ns/secrets"
LIMIT = 600  # seconds for which a test waits for what comes at once


class Fake(Cluster):
    """A cluster whose HTCJobs stand as a test says."""

    def __init__(self):
        super().__init__(None, "ns")
        self.changed = threading.Condition()
        self.jobs_, self.secrets_, self.lines_, self.refuse, self.version, self.deleted = {}, {}, {}, {}, 0, []
        self.status = {"clusterId": 7, "attempt": 1}

    def line(self, proc, **line):
        with self.changed:
            self.lines_[proc] = {"proc": proc, **line}
            self.version += 1

    def until(self, true):
        with self.changed:
            if not self.changed.wait_for(lambda: true(self), LIMIT):
                raise AssertionError(f"{self.jobs_}")

    @property
    def job(self):
        return list(self.jobs_.values())[0]

    @property
    def cancelled(self):
        metadata = next(iter(self.jobs_.values()), {}).get("metadata", {})
        return metadata.get("annotations", {}).get("htc.cern.ch/cancel-procs")

    def parallelism(self):
        return [job["spec"]["parallelism"] for job in self.jobs_.values()]

    def open(self, method, path, query=None, body=None):
        with self.changed:
            what = f"{method} {unquote(path)}"
            if what in self.refuse:
                raise self.refuse[what]
            answer = self.answer(method, unquote(path), query or {}, body)
            self.changed.notify_all()
            return io.BytesIO(json.dumps(answer).encode() if not isinstance(answer, bytes) else answer)

    def answer(self, method, path, query, body):
        if path.startswith(OUTPUT):
            lines = [line for proc, line in sorted(self.lines_.items()) if proc >= query["from"]]
            return b"".join(json.dumps(line).encode() + b"\n" for line in lines[: query["limit"]])
        if method == "POST":
            body = json.loads(json.dumps(body))
            if "dryRun" not in query:
                objects = self.jobs_ if path == JOBS else self.secrets_
                body["metadata"].update(uid=f"uid-{len(objects)}", generation=1)
                objects[body["metadata"]["name"]] = body
                self.version += 1
            return body
        name = path.rpartition("/")[2]
        if name not in self.jobs_:
            raise Refused(404, "not found")
        job = self.jobs_[name]
        if method == "DELETE":
            self.deleted.append(name)
            return self.jobs_.pop(name)
        if method == "PATCH":
            job["spec"].update(body.get("spec", {}))
            job["metadata"].setdefault("annotations", {}).update(body.get("metadata", {}).get("annotations", {}))
            self.version += 1
        return dict(job, metadata={**job["metadata"], "resourceVersion": str(self.version)}, status=self.status)


def template(starts=100):
    spec = {"script": {"image": "dask", "source": "", "queue": starts, "args": ["--nthreads", "1"]}}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "HTCJob", "metadata": {"name": "dask"}, "spec": spec}


class Case(unittest.TestCase):
    def setUp(self):
        self.cluster = Fake()
        self.ended, self.failed, self.connected = mock.Mock(), mock.Mock(), mock.Mock(return_value=set())
        self.error = threading.Event()
        self.failed.side_effect = lambda _: self.error.set()
        patch = mock.patch("htc.workers._PAUSE", 0.01)
        patch.start()
        self.addCleanup(patch.stop)
        self.workers = self.of(template())

    def of(self, job):
        workers = Workers(self.cluster, job, {"dask-key": "secret"}, self.ended, self.failed, self.connected)
        self.addCleanup(workers.close)
        return workers

    def want(self, *numbers):
        self.workers.want(set(numbers), "tls://10.0.0.1:8786")

    def failure(self):
        self.assertTrue(self.error.wait(LIMIT))
        return str(self.failed.call_args.args[0])


class Scaling(Case):
    def test_workers_are_jobs_of_one_htcjob_and_their_keys_travel_in_a_secret_of_it(self):
        self.want(0, 1, 2)
        self.cluster.until(lambda c: c.secrets_)
        job, secret = self.cluster.job, list(self.cluster.secrets_.values())[0]
        self.assertEqual(job["spec"]["script"]["args"], ["{{proc}}", "0", "tls://10.0.0.1:8786", "--nthreads", "1"])
        self.assertEqual(self.cluster.parallelism(), [3])
        reference = {"name": secret["metadata"]["name"], "key": "dask-key"}
        self.assertEqual(job["spec"]["inputs"], [{"name": "dask-key", "secretKeyRef": reference}])
        self.assertEqual(secret["stringData"], {"dask-key": "secret"})
        self.assertEqual(secret["metadata"]["ownerReferences"][0]["uid"], job["metadata"]["uid"])
        self.assertEqual(secret["metadata"]["labels"], {"htc.cern.ch/jobs": "true"})

    def test_scaling_up_makes_more_and_scaling_down_cancels(self):
        self.want(0, 1, 2)
        self.want(0, 1, 2, 3)
        self.cluster.until(lambda c: c.parallelism() == [4])
        self.connected.return_value = {3}
        self.want(0, 2)
        self.cluster.until(lambda c: c.parallelism() == [2] and c.cancelled == "1/1,3")
        self.want(0, 2, 4)
        self.cluster.until(lambda c: c.parallelism() == [3] and c.cancelled == "1/1,3")
        self.assertEqual(self.workers.next, 4)

    def test_jobs_that_htcondor_has_not_made_are_wanted_again_by_their_numbers(self):
        self.want(0, 1, 2)
        self.want(0)
        self.cluster.until(lambda c: c.parallelism() == [1])
        self.assertEqual((self.workers.next, self.cluster.cancelled), (0, None))
        self.want(0, 2)
        self.cluster.until(lambda c: c.cancelled == "1/1")
        self.want(0, 1, 2)
        self.cluster.until(lambda c: c.parallelism() == [3] and c.cancelled is None)

    def test_jobs_that_are_not_in_htcondor_yet_are_cancelled_once_they_are(self):
        self.cluster.status = {}
        self.want(0, 1)
        self.want(0, 2)
        self.cluster.until(lambda c: c.secrets_)
        self.assertIsNone(self.cluster.cancelled)
        self.cluster.status = {"clusterId": 7, "attempt": 1}
        self.cluster.until(lambda c: c.cancelled == "1/1")

    def test_a_job_that_htcondor_made_in_place_of_a_retired_one_is_cancelled(self):
        self.want(0, 1)
        self.cluster.until(lambda c: c.secrets_)
        self.cluster.line(2, state="idle")
        self.cluster.line(3, state="waiting")
        self.cluster.until(lambda c: c.cancelled == "1/2")

    def test_without_wanted_workers_the_htcjob_is_deleted_and_the_next_one_begins_with_the_lowest(self):
        self.want(0, 1)
        self.cluster.until(lambda c: c.secrets_)
        self.want()
        self.cluster.until(lambda c: c.deleted)
        self.want(5, 7)
        self.cluster.until(lambda c: c.jobs_ and c.cancelled == "1/1")
        self.assertEqual(self.cluster.job["spec"]["script"]["args"][1], "5")
        self.cluster.line(2, state="failed", reason="ExitCode")
        self.cluster.until(lambda c: self.ended.called)
        self.ended.assert_called_with([7])

    def test_closing_deletes_the_htcjob_and_makes_none_again(self):
        self.want(0)
        self.cluster.until(lambda c: c.secrets_)
        self.workers.close()
        self.assertEqual(self.cluster.jobs_, {})
        self.want(1)
        self.workers._thread.join(LIMIT)
        self.assertEqual(self.cluster.jobs_, {})

    def test_an_htcjob_that_cannot_be_deleted_is_named(self):
        self.want(0)
        self.cluster.until(lambda c: c.secrets_)
        name = self.workers.name
        self.cluster.refuse = {f"DELETE {JOBS}/{name}": Refused(0, "the API is away")}
        with mock.patch("sys.stderr", io.StringIO()) as said:
            self.workers.close()
        self.assertIn(f"kubectl delete htcjob {name}", said.getvalue())
        self.cluster.refuse = {}

    def test_a_creation_whose_answer_was_lost_is_not_done_twice(self):
        create, lost = self.cluster.answer, []

        def losing(method, path, query, body):
            if method == "POST" and body["metadata"]["name"] in {**self.cluster.jobs_, **self.cluster.secrets_} \
                    and len(self.cluster.jobs_ if path == JOBS else self.cluster.secrets_):
                raise Refused(409, "it exists")
            answer = create(method, path, query, body)
            if method == "POST" and path not in lost:
                lost.append(path)
                raise Refused(0, "the connection broke")
            return answer

        self.cluster.answer = losing
        self.want(0, 1)
        self.want(0, 1, 2)
        self.cluster.until(lambda c: c.parallelism() == [3])
        self.assertEqual(len(lost), 2)
        self.assertEqual(len(self.cluster.secrets_), 1)


class Ends(Case):
    def test_a_worker_that_has_ended_though_it_is_wanted_is_told_once(self):
        self.want(0, 1, 2)
        self.cluster.until(lambda c: c.secrets_)
        self.cluster.line(1, state="done")
        self.cluster.until(lambda c: c.parallelism() == [2])
        self.want(0, 2, 3)
        self.cluster.until(lambda c: c.parallelism() == [3])
        self.ended.assert_called_once_with([1])

    def test_workers_that_fail_count_unless_they_were_connected(self):
        self.want(*range(4))
        self.cluster.until(lambda c: c.secrets_)
        self.cluster.line(0, state="failed", reason="ExitCode")
        self.cluster.until(lambda c: c.parallelism() == [3])
        self.assertEqual(self.cluster.job["spec"]["maxFailures"], 3)
        self.connected.return_value = {1, 2}
        self.cluster.until(lambda c: c.job["spec"]["maxFailures"] == 4)
        self.connected.return_value = set()
        self.cluster.line(1, state="failed", reason="ExitCode")
        self.cluster.line(2, state="failed", reason="ExitCode")
        self.cluster.until(lambda c: c.parallelism() == [1])
        self.assertEqual(self.cluster.job["spec"]["maxFailures"], 6)

    def test_an_htcjob_that_fails_is_an_error_with_the_end_of_a_workers_stderr(self):
        self.want(0)
        self.cluster.until(lambda c: c.secrets_)
        removed = {"proc": 1, "reason": "Removed"}
        failure = {"proc": 0, "jobid": "7.0", "message": "exit code 1", "stderr": "No module named distributed\n"}
        self.cluster.status = {"phase": "Failed", "clusterId": 7, "failures": [removed, failure]}
        self.assertRegex(self.failure(), r"job 0 of dask-\w+ \(7.0 in HTCondor\): exit code 1\nNo module named distr")

    def test_what_else_ends_the_workers_is_an_error(self):
        for words, happen in {
            "was deleted, and its workers": lambda c: c.jobs_.clear(),
            "memory: too much": lambda c: setattr(
                c, "status", {"phase": "Failed", "observedGeneration": 1, "message": "memory: too much"}
            ),
            "has started 3 workers, and has no more": lambda c: self.want(1, 3),
        }.items():
            self.setUp()
            self.workers = self.of(template(starts=3))
            self.want(0)
            self.cluster.until(lambda c: c.secrets_)
            happen(self.cluster)
            self.assertRegex(self.failure(), words)

    def test_a_cluster_that_is_away_is_asked_again(self):
        self.cluster.refuse = {f"POST {JOBS}": Refused(503, "the API starts")}
        self.want(0)
        while "the API starts" not in self.workers.summary():
            self.assertFalse(self.error.wait(0.01))
        self.cluster.refuse = {}
        self.cluster.until(lambda c: c.secrets_)

    def test_what_is_refused_is_said_before_anything_is_made(self):
        self.cluster.refuse = {f"POST {SECRETS}": Refused(403, 'User "anna" cannot create')}
        with self.assertRaisesRegex(htc.Error, "needs the right to create Secrets"):
            Workers(self.cluster, template(), {"a": "b"}, None, None, None).try_out()
        self.assertEqual(self.cluster.jobs_, {})


class Bounds(unittest.TestCase):
    def change(self, wanted, states, top, crashes):
        job = {"metadata": {}, "spec": {}, "status": {"clusterId": 7, "attempt": 1}}
        return verdict.workers(job, set(wanted), states, top, crashes)["spec"]["maxFailures"]

    def test_as_many_failures_as_workers_end_the_htcjob_unless_workers_connect(self):
        self.assertEqual(self.change([0], {}, 0, 0), 3)
        self.assertEqual(self.change(range(10), {}, 9, 0), 10)
        self.assertEqual(self.change([0, 1, 2, 4], {3: "failed"}, 4, 1), 4, "nobody is connected: it counts")
        self.assertEqual(self.change([0, 1, 2, 4], {3: "failed"}, 4, 0), 5, "it is forgiven")

    def test_workers_that_were_cancelled_are_no_failures(self):
        self.assertEqual(self.change([0], {1: "failed", 2: "done"}, 3, 0), 5, "1 was removed, and 3 is going to be")


class Script(unittest.TestCase):
    def run_worker(self, cli, *arguments):
        with tempfile.TemporaryDirectory() as directory:
            script = Path(htc.__file__).with_name("worker.py").read_text()
            Path(directory, "script").write_text(script)
            Path(directory, "distributed/cli").mkdir(parents=True)
            Path(directory, "distributed/__init__.py").touch()
            Path(directory, "distributed/cli/dask_worker.py").write_text(cli)
            command = [sys.executable, Path(directory, "script"), *arguments]
            return subprocess.run(command, cwd=directory, capture_output=True, text=True)

    def test_each_start_of_a_worker_has_its_own_name(self):
        names = []
        for _ in range(2):
            arguments = "3", "4", "tls://127.0.0.1:1", "--nthreads", "2"
            words = self.run_worker("def main(words): print(*words)", *arguments).stdout.split()
            self.assertEqual(words[0], "tls://127.0.0.1:1")
            self.assertEqual(words[-2:], ["--nthreads", "2"])
            self.assertEqual(words[words.index("--host") + 1], "127.0.0.1")
            self.assertTrue(any(word.startswith("--tls-key=/") and word.endswith("/dask-key") for word in words))
            names.append(words[words.index("--name") + 1])
        self.assertRegex(names[0], "^7-[0-9a-f]{8}$")
        self.assertNotEqual(names[0], names[1])

    def test_an_address_of_ones_own_is_left_alone(self):
        arguments = "0", "0", "tls://127.0.0.1:1", "--interface=ib0"
        self.assertNotIn("--host", self.run_worker("def main(words): print(*words)", *arguments).stdout)

    def test_sigterm_ends_a_worker_whatever_dask_does_with_it(self):
        dask = "import os, signal\ndef main(words): signal.signal(15, signal.SIG_IGN); os.kill(os.getpid(), 15)"
        self.assertEqual(self.run_worker(dask, "0", "0", "tls://127.0.0.1:1").returncode, 143)

    def test_an_image_without_dask_is_named(self):
        said = self.run_worker("import toolz_that_is_not_there", "0", "0", "tls://127.0.0.1:1")
        self.assertEqual(said.returncode, 1)
        self.assertIn("The image of a worker needs distributed", said.stderr)


class Missing(unittest.TestCase):
    def test_without_dask_its_cluster_says_what_to_install_and_all_else_works(self):
        code = "import sys; sys.modules['distributed'] = None; import htc; htc.submit; htc.HTCCluster"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
        self.assertIn("htc.errors.Error: HTCCluster needs Dask: pip install distributed cryptography", said)


if __name__ == "__main__":
    unittest.main()
