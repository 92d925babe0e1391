import base64
import hashlib
import inspect
import io
import json
import pickle
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import types
import unittest
import zlib
from concurrent.futures import CancelledError, TimeoutError
from pathlib import Path
from unittest import mock
from urllib.parse import unquote

import htc
from htc import payload, progress, uploads, verdict
from htc.cluster import OUTPUT, Cluster, Refused, connect
from htc.types import GROUP, VERSION

JOBS = f"/apis/{GROUP}/{VERSION}/namespaces/ns/htcjobs"
LIMIT = 600  # seconds for which a test waits for what comes at once


class Fake(Cluster):
    """A cluster of one HTCJob, whose jobs end as a test says."""

    def __init__(self):
        super().__init__(None, "ns")
        self.lock = threading.Lock()
        self.job, self.config_map, self.version = None, None, 0
        self.status, self.procs, self.files_of = {"clusterId": 7, "attempt": 1}, {}, {}
        self.patches, self.asked, self.refuse = [], [], {}
        self.uploaded, self.broken = {}, 0  # what was uploaded, and how many pieces break off

    def end(self, proc, files=None, **line):
        with self.lock:
            files = files or {}
            self.procs[proc] = {"proc": proc, "state": "done", "jobid": f"7.{proc}", "output": True, **line}
            self.files_of[proc] = {"_condor_stderr": b"", "_condor_stdout": b"", **files}
            self.version += 1

    def change(self, **status):
        with self.lock:
            self.status.update(status)
            self.version += 1

    def open(self, method, path, query=None, body=None):
        with self.lock:
            what = f"{method} {unquote(path)}"
            self.asked.append((what, query))
            if what in self.refuse:
                raise self.refuse[what]
            return io.BytesIO(self.answer(what, query or {}, body))

    def answer(self, what, query, body):
        if what == f"GET {OUTPUT}":
            return b"{}"
        if what == "POST /api/v1/namespaces/ns/configmaps":
            if "dryRun" not in query:
                self.config_map = body
            return b"{}"
        if what.startswith(f"PATCH {OUTPUT}/namespaces/ns/uploads/"):
            return self.take(what.rpartition("/")[2], query, body)
        if what == f"POST {JOBS}":
            self.job = dict(body, metadata={**body["metadata"], "uid": "u", "generation": 1})
        elif self.job is None:
            raise Refused(404, "not found")
        name = self.job["metadata"]["name"]
        output = f"GET {OUTPUT}/namespaces/ns/htcjobs/{name}/log"
        if what == f"PATCH {JOBS}/{name}":
            self.patches.append(body)
        elif what == f"DELETE {JOBS}/{name}":
            self.job = None
            return b"{}"
        elif what == f"{output}/procs":
            lines = [line for proc, line in sorted(self.procs.items()) if proc >= query["from"]]
            return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        elif what == f"{output}/archive":
            wanted = [query["proc"]] if "proc" in query else [p for p in sorted(self.files_of) if p >= query["from"]]
            files = {f"{p}/{path}": text for p in wanted for path, text in sorted(self.files_of[p].items())}
            return tar({f: text for f, text in files.items() if query.get("file", "") in ("", f.partition("/")[2])})
        elif what == output:
            return self.files_of[query["proc"]]["_condor_" + query["stream"]]
        metadata = {**self.job["metadata"], "resourceVersion": str(self.version)}
        return json.dumps(dict(self.job, metadata=metadata, status=self.status)).encode()


    def take(self, name, query, body):
        """Takes a piece of an upload, or of what breaks off its first half."""
        text = self.uploaded.get(name, b"")
        if "offset" in query:
            assert query["offset"] == len(text)
            self.broken -= 1
            self.uploaded[name] = text = text + (body if self.broken < 0 else body[: len(body) // 2])
            if self.broken >= 0:
                raise Refused(0, "the connection broke")
        whole = name == f"sha256:{hashlib.sha256(text).hexdigest()}"
        return json.dumps({"offset": len(text), "whole": whole}).encode()


def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    return out.getvalue()


def returned(value):
    return {payload.RESULT: pickle.dumps(value)}


class Case(unittest.TestCase):
    def setUp(self):
        self.cluster = Fake()
        for target, value in ("htc.submission.connect", lambda _: self.cluster), ("htc.futures._FIRST_PAUSE", 0.01):
            patch = mock.patch(target, value)
            patch.start()
            self.addCleanup(patch.stop)

    def script(self, n):
        return htc.submit("true", items=[{"N": i} for i in range(n)], image="centos")

    def asks(self, what):
        return [query for path, query in self.cluster.asked if path.endswith(what)]


class Submit(Case):
    def test_a_function_and_its_items_travel_in_a_config_map_of_the_htcjob(self):
        jobs = htc.submit(len, items=["a", "bc"], image="python", memory="1Gi", retries=3, outputs=[{"path": "plots"}])
        spec = self.cluster.job["spec"]
        self.assertEqual((spec["script"]["command"], spec["script"]["queue"], spec["retries"]), ("python3", 2, 3))
        self.assertEqual(spec["resources"], {"memory": "1Gi"})
        self.assertEqual(spec["outputs"], [{"path": "plots"}, {"path": payload.RESULT}])
        self.assertEqual(spec["inputs"][0]["configMapKeyRef"]["name"], self.cluster.config_map["metadata"]["name"])
        self.assertEqual(self.cluster.config_map["metadata"]["ownerReferences"][0]["uid"], "u")
        self.cluster.end(1, returned(2))
        self.cluster.end(0, returned(1))
        self.assertEqual(jobs.results(LIMIT), [1, 2])

    def test_the_runner_calls_the_function_with_the_item_of_its_number(self):
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "script").write_text(payload.source())
            for name, text in payload.pack(divmod_of_seven, [1, 2, 0]).items():
                Path(directory, name).write_bytes(text)
            Path(directory, "test_htc.py").write_text("def divmod_of_seven(n): return divmod(7, n)")

            def run(number):
                return subprocess.run([sys.executable, "script", number], cwd=directory, capture_output=True, text=True)

            self.assertEqual(run("1").returncode, 0)
            self.assertEqual(pickle.loads(Path(directory, payload.RESULT).read_bytes()), (3, 1))
            self.assertIn("ZeroDivisionError", run("2").stderr)

    def test_a_function_may_change_the_directory_and_start_processes(self):
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "script").write_text(payload.source())
            for name, text in payload.pack(in_a_process_elsewhere, [-3]).items():
                Path(directory, name).write_bytes(text)
            Path(directory, "test_htc.py").write_text(inspect.getsource(in_a_process_elsewhere))
            said = subprocess.run([sys.executable, "script", "0"], cwd=directory, capture_output=True, text=True)
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertEqual(pickle.loads(Path(directory, payload.RESULT).read_bytes()), 3)

    def test_the_runner_says_what_to_do_and_what_is_printed_outlives_the_end(self):
        def run(function, *lines):
            with tempfile.TemporaryDirectory() as directory:
                Path(directory, "script").write_text(payload.source())
                for name, text in payload.pack(function, None).items():
                    Path(directory, name).write_bytes(text)
                if lines:
                    Path(directory, "test_htc.py").write_text("\n".join(lines))
                return subprocess.run([sys.executable, "script", "0"], cwd=directory, capture_output=True, text=True)

        self.assertEqual(run(prints_and_ends, inspect.getsource(prints_and_ends)).stdout, "printed\n")
        self.assertRegex(
            run(prints_and_ends).stderr, "(?s)Traceback.*no module test_htc: take an image .*test_htc.py"
        )
        said = run(returns_a_lock, inspect.getsource(returns_a_lock))
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stderr, "(?s)TypeError: .*has returned a lock that cannot be pickled: have it")

    def test_the_runner_says_that_the_image_has_another_python(self):
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "script").write_text(payload.source())
            content = {"python": [3, 1], "function": b"", "items": None}
            Path(directory, payload.FUNCTION).write_bytes(zlib.compress(pickle.dumps(content)))
            said = subprocess.run([sys.executable, Path(directory, "script"), "0"], capture_output=True, text=True)
            self.assertEqual(said.returncode, 1)
            self.assertIn("pickled by Python 3.1, and the image has 3.", said.stderr)

    def test_without_cloudpickle_a_function_of_the_notebook_is_refused_in_words(self):
        with mock.patch.dict(sys.modules, {"cloudpickle": None}):
            with self.assertRaisesRegex(htc.Error, "is defined in the notebook, .*pip install cloudpickle"):
                htc.submit(lambda x: x, items=[1], image="python")
            with self.assertRaisesRegex(htc.Error, r"items\[1\] cannot be sent to a job"):
                htc.submit(len, items=["a", threading.Lock()], image="python")

    def test_jobs_cannot_be_sent_to_jobs(self):
        jobs = self.script(1)
        for items, words in ([jobs[0]], r"job 0 of script-.* pass its result\(\)"), ([jobs], r"pass their results\(\)"):
            with self.assertRaisesRegex(htc.Error, r"items\[0\] cannot be sent to a job, .*" + words):
                htc.submit(repr, items=items, image="python")

    def test_items_of_a_script_are_variables_and_many_of_them_a_table(self):
        self.script(2)
        self.assertEqual(self.cluster.job["spec"]["items"], [{"N": "0"}, {"N": "1"}])
        self.assertIsNone(self.cluster.config_map)
        self.script(1001)
        self.assertNotIn("items", self.cluster.job["spec"])
        key = self.cluster.job["spec"]["itemsFrom"]["configMapKeyRef"]["key"]
        table = json.loads(base64.b64decode(self.cluster.config_map["binaryData"][key]))
        self.assertEqual((len(table), table[1000]), (1001, {"N": "1000"}))

    def test_what_cannot_be_sent_is_refused_in_words(self):
        for words, fields in {
            "items is empty": {"items": []},
            r"items\[0\] is 1: an item of a script is a dict of variables": {"items": [1]},
            r"items\[0\]: A is \[\]: a variable of a script is a text or a number": {"items": [{"A": []}]},
            "no field retrys: do you mean retries": {"retrys": 1},
            "queue is not given itself: use items=": {"queue": 3},
            "name 'A_B': want at most 253 lower-case letters": {"name": "A_B"},
        }.items():
            with self.assertRaisesRegex(htc.Error, words):
                htc.submit("true", image="centos", **fields)
        with tempfile.TemporaryDirectory() as directory:
            for path in (one := Path(directory, "1", "cuts.txt"), two := Path(directory, "2", "cuts.txt")):
                path.parent.mkdir()
                path.write_text("")
            with self.assertRaisesRegex(htc.Error, "1, which is a directory: name its files, or upload it"):
                htc.submit("true", image="centos", files=[one.parent])
            with self.assertRaisesRegex(htc.Error, "cuts.txt is another file's name beside the script"):
                htc.submit("true", image="centos", files=[one, two])
        with self.assertRaisesRegex(htc.Error, "the items have .* and 1 MiB can be sent with an HTCJob"):
            htc.submit("true", items=[{"N": "x" * 600_000}] * 2, image="centos")
        self.assertIsNone(self.cluster.job)

    def test_what_is_too_large_for_a_config_map_is_uploaded(self):
        with tempfile.TemporaryDirectory() as directory, mock.patch("htc.uploads._PIECE", 1 << 20):
            small, large = Path(directory, "cuts.txt"), Path(directory, "events.bin")
            small.write_bytes(b"pt > 20")
            large.write_bytes(secret(0) * 100)
            self.cluster.broken = 1
            with mock.patch("htc.uploads._PAUSES", (0,)):
                htc.submit(len, items=[secret(i) for i in range(40)], image="python", files=[small, large])
            inputs = {i["name"]: i for i in self.cluster.job["spec"]["inputs"]}
            self.assertEqual(self.cluster.uploaded[inputs["events.bin"]["upload"]], large.read_bytes())
            self.assertGreater(len(self.cluster.uploaded[inputs[payload.FUNCTION]["upload"]]), 1 << 20)
            self.assertIn("configMapKeyRef", inputs["cuts.txt"])
            self.assertEqual(self.cluster.config_map["binaryData"].keys() & {"events.bin", payload.FUNCTION}, set())
            path = self.cluster.uploads(inputs["events.bin"]["upload"])
            self.cluster.refuse = {f"PATCH {path}": Refused(503, "full")}
            with mock.patch("htc.uploads._PAUSES", (0,)):
                with self.assertRaisesRegex(htc.Error, "3000000 bytes cannot be uploaded for the jobs: full"):
                    htc.submit("true", image="centos", files=[large])

    def test_as_few_files_are_uploaded_as_make_room_for_the_others(self):
        sizes = {"a": 1, "b": 7, "c": 5}
        for most, names in {13: [], 12: ["b"], 6: ["b"], 5: ["b", "c"], 0: ["b", "c", "a"]}.items():
            self.assertEqual(uploads.too_large(sizes, most), names)

    def test_an_htcjob_whose_config_map_cannot_be_made_is_deleted(self):
        create = self.cluster.answer

        def refusing(what, query, body):
            if what.endswith("/configmaps") and "dryRun" not in query:
                raise Refused(500, "etcd is full")
            return create(what, query, body)

        self.cluster.answer = refusing
        with self.assertRaisesRegex(htc.Error, "etcd is full"):
            htc.submit(len, items=["a"], image="python")
        self.assertIsNone(self.cluster.job)

    def test_an_htcjob_whose_creation_is_not_answered_is_found(self):
        self.lose(Refused(0, "the connection broke"))
        jobs = htc.submit(len, items=["a"], image="python", name="x")
        self.assertEqual(self.cluster.config_map["metadata"]["ownerReferences"][0]["uid"], "u")
        self.cluster.end(0, returned(1))
        self.assertEqual(jobs.results(LIMIT), [1])
        self.assertIn("script-", htc.submit("true", image="centos").name)
        with self.assertRaisesRegex(htc.Error, r"the connection broke; the HTCJob x may have been made: .*attach\('x'\)"):
            htc.submit("true", image="centos", name="x")  # or by somebody else, before
        self.assertIsNotNone(self.cluster.job)
        self.cluster.job = None
        self.cluster.refuse = {f"POST {JOBS}": Refused(0, "the connection broke")}
        with self.assertRaisesRegex(htc.Error, "the connection broke$"):
            htc.submit("true", image="centos")

    def test_an_interrupted_submission_leaves_nothing(self):
        self.lose(KeyboardInterrupt())
        with self.assertRaises(KeyboardInterrupt):
            htc.submit(len, items=["a"], image="python")
        self.assertIsNone(self.cluster.job)
        with mock.patch("htc.submission._PAUSES", (0,)):
            self.cluster.refuse = {f"DELETE {JOBS}/x": Refused(0, "away")}
            with self.assertRaisesRegex(htc.Error, "interrupted; the HTCJob x is left behind"):
                htc.submit(len, items=["a"], image="python", name="x")

    def lose(self, error):
        """The HTCJob is created, and the answer is lost."""
        create = self.cluster.answer

        def losing(what, query, body):
            answer = create(what, query, body)
            if what == f"POST {JOBS}":
                raise error
            return answer

        self.cluster.answer = losing

    def test_refusals_of_the_cluster_say_what_to_do(self):
        for what, status, words in (
            (f"GET {OUTPUT}", 404, "deploy/components/output"),
            ("POST /api/v1/namespaces/ns/configmaps", 403, "htcjob-input-files"),
            (f"POST {JOBS}", 409, "choose another name"),
        ):
            self.cluster.refuse = {what: Refused(status, 'User "anna" cannot create')}
            with self.assertRaisesRegex(htc.Error, words):
                htc.submit(len, items=["a"], image="python", name="x")
        self.cluster.refuse = {"POST /api/v1/namespaces/ns/configmaps": Refused(403, "exceeded quota: q")}
        with self.assertRaisesRegex(htc.Error, "^exceeded quota: q$"):
            htc.submit(len, items=["a"], image="python")


def divmod_of_seven(n):
    return divmod(7, n)


def in_a_process_elsewhere(n):
    import multiprocessing
    import os
    from concurrent.futures import ProcessPoolExecutor

    os.chdir("/")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        return processes.submit(abs, n).result()


def prints_and_ends():
    import os

    print("printed")
    os._exit(3)


def returns_a_lock():
    import threading

    return threading.Lock()


def secret(i):
    import random

    return random.Random(i).randbytes(30000)


class Results(Case):
    def test_as_completed_yields_jobs_in_the_order_of_their_ends(self):
        jobs = self.script(2)
        self.cluster.end(1, {"_condor_stdout": b"second\n"})
        ended = htc.as_completed(jobs, LIMIT)
        self.assertEqual(next(ended).result(), "second\n")
        self.cluster.end(0, {"_condor_stdout": b"first\n"})
        self.assertEqual(next(ended).result(), "first\n")

    def test_map_returns_results_in_the_order_of_the_items(self):
        results = htc.map(len, ["a", "bc", "d"], image="python", timeout=LIMIT)
        for proc, n in ((2, 1), (1, 2), (0, 1)):
            self.cluster.end(proc, returned(n))
        self.assertEqual(list(results), [1, 2, 1])

    def test_a_failure_is_raised_at_once_with_the_end_of_stderr(self):
        jobs = self.script(2)
        self.cluster.end(1, state="failed", exitCode=3, reason="ExitCode", message="exit code 3", stderr="no channel\n")
        with self.assertRaises(htc.JobError) as raised:
            jobs.results(LIMIT)
        self.assertEqual(str(raised.exception), f"job 1 of {jobs.name} (7.1 in HTCondor): exit code 3\nno channel")
        self.assertEqual(raised.exception.exit_code, 3)
        again = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual((str(again), again.exit_code), (str(raised.exception), 3))
        self.assertEqual(pickle.loads(pickle.dumps(Refused(403, "no"))).status, 403)

    def test_a_job_that_has_ended_counts_when_its_output_is_here(self):
        jobs = self.script(1)
        self.cluster.end(0, output=False)
        while "1 done" not in jobs.summary():
            jobs.changed.wait(LIMIT)
            jobs.changed.clear()
        with self.assertRaisesRegex(TimeoutError, "1 done"):
            jobs.results(0.05)
        self.cluster.end(0, {"_condor_stdout": b"here"})
        self.assertEqual(jobs.results(LIMIT), ["here"])

    def test_of_many_jobs_results_come_in_one_answer_and_of_few_one_by_one(self):
        jobs = self.script(100)
        for proc in (3, 97):
            self.cluster.end(proc)
        htc.wait([jobs[3], jobs[97]], LIMIT)
        self.assertNotIn("from", self.asks("/archive")[0])
        with self.cluster.lock:
            self.cluster.asked.clear()
            self.cluster.version += 1
            for proc in range(100):
                self.cluster.procs[proc] = {"proc": proc, "state": "done", "output": True}
                self.cluster.files_of[proc] = {"_condor_stdout": str(proc).encode()}
        self.assertEqual(jobs.results(LIMIT)[50], "50")
        self.assertEqual(self.asks("/archive"), [{"from": 0, "file": "_condor_stdout"}])

    def test_what_is_wrong_with_one_result_concerns_its_job_alone(self):
        class Exits:
            def __reduce__(self):
                return sys.exit, ("gone",)

        jobs = htc.submit(len, items=["a", "b", "c", "d"], image="python")
        self.cluster.end(0, {payload.RESULT: b"no pickle"})
        self.cluster.end(1)
        self.cluster.end(3, returned(Exits()))
        with self.assertRaisesRegex(htc.Error, "cannot be read here: SystemExit: gone"):
            jobs[3].result(LIMIT)
        self.cluster.end(2, returned(1))
        self.assertEqual(jobs[2].result(LIMIT), 1)
        with self.assertRaisesRegex(htc.Error, "cannot be read here: UnpicklingError"):
            jobs[0].result(LIMIT)
        with self.assertRaisesRegex(htc.Error, f"has succeeded, and left no {payload.RESULT}: a function that"):
            jobs[1].result(LIMIT)

    def test_a_callback_that_exits_holds_up_no_other_job(self):
        jobs = self.script(3)
        for job in jobs[:2]:
            job.add_done_callback(lambda _: sys.exit("over"))
        self.cluster.end(0)
        self.cluster.end(1, state="failed", exitCode=3)
        htc.wait(jobs[:2], LIMIT)
        self.cluster.end(2, {"_condor_stdout": b"here"})
        self.assertEqual(jobs[2].result(LIMIT), "here")

    def test_a_cluster_that_is_away_is_asked_again_and_one_that_refuses_is_not(self):
        jobs = self.script(1)
        procs = f"GET {OUTPUT}/namespaces/ns/htcjobs/{jobs.name}/log/procs"
        self.cluster.refuse = {procs: Refused(503, "htcd starts")}
        self.cluster.change()
        while "htcd starts" not in jobs.summary():
            jobs.changed.wait(LIMIT)
            jobs.changed.clear()
        self.cluster.refuse = {procs: Refused(400, "no such thing")}
        with self.assertRaisesRegex(htc.Error, r"no such thing; the jobs go on, and htc.attach\('script-.*'\)"):
            jobs.results(LIMIT)

    def test_a_login_that_has_expired_is_waited_for_a_while(self):
        jobs = self.script(1)
        look = f"GET {JOBS}/{jobs.name}"
        jobs.changed.wait(LIMIT)
        self.cluster.refuse = {look: Refused(401, "Unauthorized")}
        while "Unauthorized" not in jobs.summary():
            jobs.changed.wait(LIMIT)
            jobs.changed.clear()
        self.cluster.refuse = {}
        self.cluster.end(0, {"_condor_stdout": b"here"})
        self.assertEqual(jobs.results(LIMIT), ["here"])
        with mock.patch("htc.cluster._PATIENCE", 0):
            jobs = self.script(2)
            self.cluster.refuse = {f"GET {JOBS}/{jobs.name}": Refused(403, "not yours")}
            with self.assertRaisesRegex(htc.Error, "not yours"):
                jobs[1].result(LIMIT)

    def test_a_refused_login_and_a_full_quota_say_what_to_do(self):
        rest = types.ModuleType("kubernetes.client.rest")
        rest.ApiException = type("ApiException", (Exception,), {"reason": ""})
        modules = {"kubernetes": mock.Mock(), "kubernetes.client": mock.Mock(), "kubernetes.client.rest": rest}
        for status, message, words in (
            (401, "Unauthorized", "^Unauthorized: your login has expired, .* log in again"),
            (403, 'User "system:anonymous" cannot get path', "log in again"),
            (403, 'pods "x" is forbidden: exceeded quota: q', "delete what you no longer need"),
            (403, 'User "anna" cannot get', '^User "anna" cannot get$'),
        ):
            client = mock.Mock()
            client.call_api.side_effect = no = rest.ApiException()
            no.status, no.body = status, json.dumps({"message": message}).encode()
            with mock.patch.dict(sys.modules, modules), self.assertRaisesRegex(htc.Error, words):
                Cluster(client, "ns").object("GET", "/x")

    def test_those_with_the_same_login_share_connections(self):
        tokens = ["old", "old", "new", "new"]

        def load(client_configuration, context):
            client_configuration.api_key = {"authorization": tokens.pop(0)}

        config = mock.Mock(ConfigException=Exception, load_kube_config=load)
        config.list_kube_config_contexts.return_value = [], {"name": "mine", "context": {}}
        client = mock.Mock(Configuration=types.SimpleNamespace, ApiClient=lambda settings: [settings])
        with mock.patch.dict(sys.modules, {"kubernetes": mock.Mock(client=client, config=config)}):
            first, second = connect(), connect()
            self.assertIs(first.client, second.client)
            third = connect()
            self.assertIsNot(first.client, third.client)
            self.assertIs(first._login(), third.client)

    def test_a_new_login_is_used_when_the_old_one_has_expired(self):
        class Expired(Exception):
            status, body, reason = 401, b"", "Unauthorized"

        rest = types.ModuleType("kubernetes.client.rest")
        rest.ApiException = Expired
        modules = {"kubernetes": mock.Mock(), "kubernetes.client": mock.Mock(), "kubernetes.client.rest": rest}
        old, new = mock.Mock(), mock.Mock()
        old.call_api.side_effect = Expired
        new.call_api.return_value = io.BytesIO(b"{}")
        with mock.patch.dict(sys.modules, modules):
            self.assertEqual(Cluster(old, "ns", lambda: new).object("GET", "/x"), {})
            with self.assertRaises(Refused) as refused:
                Cluster(old, "ns", mock.Mock(side_effect=OSError)).object("GET", "/x")
        self.assertEqual(refused.exception.status, 401)

    def test_a_new_login_is_that_of_the_context_which_was_current_at_the_beginning(self):
        class ConfigException(Exception):
            pass

        config = mock.Mock(ConfigException=ConfigException)
        config.list_kube_config_contexts.return_value = [], {"name": "mine", "context": {"namespace": "physics"}}
        client = mock.Mock()
        with mock.patch.dict(sys.modules, {"kubernetes": mock.Mock(client=client, config=config)}):
            cluster = connect()
            self.assertEqual(cluster.namespace, "physics")
            config.list_kube_config_contexts.return_value = [], {"name": "another", "context": {}}
            self.assertEqual(cluster._login(), client.ApiClient())
            self.assertEqual([call.kwargs["context"] for call in config.load_kube_config.mock_calls], ["mine", "mine"])
            config.load_kube_config.side_effect = ConfigException("there is no context mine any more")
            with self.assertRaises(ConfigException):
                cluster._login()
            config.load_incluster_config.assert_not_called()
            config.list_kube_config_contexts.side_effect = ConfigException("no file")
            self.assertEqual(connect().namespace, "default")
            config.load_incluster_config.assert_called_once()

    def test_an_htcjob_that_is_refused_or_deleted_ends_all_its_jobs(self):
        jobs = self.script(2)
        self.cluster.change(clusterId=0, phase="Failed", observedGeneration=1, message="memory: too much")
        with self.assertRaisesRegex(htc.Error, "memory: too much"):
            jobs[1].result(LIMIT)
        self.assertIn("2 failed", jobs.summary())
        self.cluster.status = {}
        jobs = self.script(1)
        jobs.delete()
        with self.assertRaisesRegex(htc.Error, "was deleted"):
            jobs.results(LIMIT)

    def test_attach_finds_the_jobs_of_an_htcjob(self):
        name = htc.submit(len, items=["a", "bc"], image="python").name
        self.cluster.end(0, returned(1))
        self.cluster.end(1, returned(2))
        self.assertEqual(htc.attach(name).results(LIMIT), [1, 2])

    def test_attach_finds_also_the_jobs_that_were_removed(self):
        name = self.script(3).name
        self.cluster.change(phase="Suspended", active=0, succeeded=1, failed=0)
        self.assertEqual(len(htc.attach(name)), 3)
        self.cluster.job["spec"].update(items=[], itemsFrom={"configMapKeyRef": {}})
        self.cluster.change(jobid=["7.0", "7.1-99"])
        self.assertEqual(len(htc.attach(name)), 100)

    def test_files_are_copied_and_none_outside_of_the_directory(self):
        jobs = self.script(1)
        self.cluster.end(0, {"plots/a.png": b"png", "_condor_stdout": b"said"})
        with tempfile.TemporaryDirectory() as directory:
            jobs[0].files(directory)
            self.assertEqual(Path(directory, "plots/a.png").read_bytes(), b"png")
            self.assertEqual(Path(directory, "stdout").read_bytes(), b"said")
            self.assertEqual(jobs[0].log(), "said")
            self.cluster.end(0, {"stdout": b"own", "_condor_stdout": b"said", "_condor_stderr": b"err"})
            copied = {path.name: path.read_bytes() for path in jobs[0].files(directory)}
            self.assertEqual(copied, {"stdout": b"own", "_condor_stdout": b"said", "stderr": b"err"})
            self.cluster.end(0, {"stderr/a.txt": b"own", "_condor_stderr": b"err"})
            copied = {path.name: path.read_bytes() for path in jobs[0].files(Path(directory, "b"))}
            self.assertEqual(copied, {"a.txt": b"own", "stdout": b"", "_condor_stderr": b"err"})
            self.cluster.end(0, {"../../evil": b""})
            with self.assertRaisesRegex(htc.Error, "would be written elsewhere"):
                jobs[0].files(directory)


class Cancel(Case):
    def patched(self, last):
        """Waits for a change of the HTCJob."""
        end = time.monotonic() + LIMIT
        while self.cluster.patches[-1:] != [last]:
            self.assertLess(time.monotonic(), end, self.cluster.patches[-1:])
            time.sleep(0.01)

    def test_jobs_are_removed_one_by_one_and_the_last_ones_with_the_htcjob(self):
        jobs = self.script(4)
        self.assertTrue(jobs[1].cancel())
        self.assertTrue(jobs[2].cancel())
        self.patched({"metadata": {"annotations": {"htc.cern.ch/cancel-procs": "1/1-2"}}})
        with self.assertRaises(CancelledError):
            jobs[1].result()
        self.cluster.end(0)
        jobs[0].result(LIMIT)
        self.assertFalse(jobs.cancel())
        self.patched({"spec": {"suspend": True}})
        self.assertEqual(len(list(htc.as_completed(jobs, LIMIT))), 4)

    def test_many_jobs_that_are_cancelled_one_by_one_are_removed_with_few_changes(self):
        with mock.patch("htc.futures._FIRST_PAUSE", 0.5):
            jobs = self.script(20_000)
            for job in jobs[1:]:
                self.assertTrue(job.cancel())
        self.patched({"metadata": {"annotations": {"htc.cern.ch/cancel-procs": "1/1-19999"}}})
        self.assertLess(len(self.cluster.patches), 100)

    def test_what_is_cancelled_right_before_the_end_of_the_program_is_removed(self):
        program = (
            "import time, types; from unittest import mock; from test_htc import *; cluster = Fake()\n"
            "mock.patch('htc.submission.connect', lambda _: cluster).start()\n"
            "mock.patch('htc.futures._FIRST_PAUSE', 0.5).start()\n"
            "mock.patch('htc.futures.Futures._follow').start()\n"
            "cluster.patches = types.SimpleNamespace(append=lambda patch: print(patch, flush=True))\n"
            "for job in htc.submit('true', items=[{'A': 1}] * 9, image='centos')[1:]: job.cancel()\n"
        )
        said = subprocess.check_output([sys.executable, "-c", program], cwd=Path(__file__).parent, text=True)
        self.assertIn("'1/1-8'", said.splitlines()[-1])

    def test_what_others_have_cancelled_stays_so(self):
        jobs = self.script(9)
        self.cluster.job["metadata"]["annotations"] = {"htc.cern.ch/cancel-procs": "1/3-4,8,20-99999999"}
        jobs[1].cancel()
        asked = self.cluster.patches[-1]["metadata"]["annotations"]
        self.assertEqual(asked, {"htc.cern.ch/cancel-procs": "1/1,3-4,8"})
        many = {"metadata": {"annotations": {"htc.cern.ch/cancel-procs": "1/" + ",".join(["0-999999"] * 20_000)}},
                "status": {"attempt": 1}}
        self.assertEqual(len(verdict.cancelled(many, 1_000_000)), 1_000_000)
        for other in "0/3", "1/x", "1/3-", "1/" + "9" * 5000:
            self.assertEqual(verdict.cancelled({"metadata": {"annotations": asked | {
                "htc.cern.ch/cancel-procs": other}}, "status": {"attempt": 1}}, 9), [])

    def test_another_htcjob_of_the_same_name_is_left_alone(self):
        jobs = self.script(2)
        jobs[0].cancel()
        self.cluster.end(1)
        jobs[1].result(LIMIT)
        self.cluster.job["metadata"]["uid"] = "another"
        jobs.cancel()
        self.assertNotIn({"spec": {"suspend": True}}, self.cluster.patches)

    def test_who_may_not_cancel_still_gets_the_results_of_the_others(self):
        jobs = self.script(2)
        self.cluster.refuse = {f"PATCH {JOBS}/{jobs.name}": Refused(403, "not yours")}
        with self.assertRaisesRegex(htc.Error, "not yours"):
            jobs[0].cancel()
        self.assertIn("jobs that were cancelled go on: not yours", jobs.summary())
        self.cluster.end(1, {"_condor_stdout": b"here"})
        self.assertEqual(jobs[1].result(LIMIT), "here")

    def test_a_job_that_is_not_in_htcondor_yet_is_removed_once_it_is(self):
        self.cluster.status = {}
        jobs = self.script(2)
        jobs[0].cancel()
        self.assertEqual(self.cluster.patches, [])
        self.cluster.change(clusterId=7, attempt=2)
        while not self.cluster.patches:
            jobs.changed.wait(LIMIT)
            jobs.changed.clear()
        self.assertEqual(self.cluster.patches[0]["metadata"]["annotations"]["htc.cern.ch/cancel-procs"], "2/0")


class Verdict(unittest.TestCase):
    def test_output_that_will_never_come_is_not_waited_for(self):
        line = {"proc": 0, "state": "done"}
        for reason, final in {"Fetching": False, "NotEnded": False, "GivenUp": True}.items():
            fetched = {"type": "OutputFetched", "status": "False", "reason": reason, "message": "the disk"}
            status = {"phase": "Succeeded", "conditions": [fetched]}
            self.assertEqual(verdict.is_final(line, status), final, reason)
        error = verdict.error_of("x", line, status)
        self.assertEqual(str(error), "job 0 of x has succeeded, but its output is not here: the disk")
        self.assertTrue(verdict.is_final({"proc": 0, "state": "failed", "reason": "Removed"}, {}))

    def test_an_htcjob_that_has_ended_is_left_as_it_is(self):
        status = {"clusterId": 7, "attempt": 1}
        self.assertIsNotNone(verdict.removal({"status": status}, [0], True))
        self.assertIsNone(verdict.removal({"status": {**status, "phase": "Failed"}}, [0], True))


class Progress(Case):
    def test_a_terminal_gets_lines(self):
        jobs = self.script(1)
        self.cluster.end(0)
        with mock.patch("sys.stderr", io.StringIO()) as said:
            jobs.progress()
        self.assertEqual(said.getvalue().splitlines()[-1], f"{jobs.name}: 1 done")

    def test_an_interruption_ends_the_line_of_a_terminal(self):
        jobs = self.script(1)
        jobs.changed = mock.Mock(**{"wait.side_effect": KeyboardInterrupt})
        terminal = io.StringIO()
        terminal.isatty = lambda: True
        with mock.patch("sys.stderr", terminal), self.assertRaises(KeyboardInterrupt):
            jobs.progress()
        self.assertEqual(terminal.getvalue()[-1], "\n")

    def test_a_notebook_gets_a_bar_that_is_updated(self):
        display = mock.Mock()
        ipython = types.ModuleType("IPython")
        ipython.get_ipython = lambda: mock.Mock(kernel=True)
        ipython.display = types.ModuleType("IPython.display")
        ipython.display.display = display
        with mock.patch.dict(sys.modules, {"IPython": ipython, "IPython.display": ipython.display}):
            jobs = self.script(2)
            self.cluster.change(reason="<b>", message="<b>no slot</b>")
            threading.Timer(0.2, lambda: [self.cluster.end(i) for i in (0, 1)]).start()
            progress.show(jobs)
        last = (display.call_args_list + display.return_value.update.call_args_list)[-1].args[0]
        self.assertIn('<progress value="2" max="2"></progress>', last["text/html"])
        self.assertIn("&lt;b&gt;no slot", last["text/html"])


if __name__ == "__main__":
    unittest.main()
