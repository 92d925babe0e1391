#!/usr/bin/env python3
"""Submits one of Snakemake's jobs as an HTCJob and prints its name. Snakemake calls it with the job's script."""

import io
import json
import os
import re
import secrets
import shlex
import sys
import tarfile
import tempfile

import yaml
from products import LABEL, directory, htcd, producer

HERE = os.path.dirname(os.path.realpath(__file__))
# What htcd submit --input takes, and how many further inputs an HTCJob may have.
MOST = 1 << 20
MOST_JOBS = 90
# Of snakemake's arguments: what holds only on the submitting machine.
DROPPED = {"--wait-for-files", "--wait-for-files-file", "--scheduler-solver-path", "--directory", "--conda-base-path", "--cores"}


class Refused(Exception):
    pass


def read(jobscript):
    """Returns what snakemake says of the job, its command's variables, its arguments, and the files that it waits for."""
    with open(jobscript) as file:
        text = file.read()
    properties = json.loads(re.search(r"^# properties = (.*)$", text, re.M).group(1))
    words = shlex.split(text[text.index("\n", text.index("# properties = ")) :])
    start = next(i for i in range(len(words) - 1) if words[i : i + 2] == ["-m", "snakemake"])
    first = words.index("&&") + 1
    variables = dict(word.split("=", 1) for word in words[first : start - 1])
    arguments, inputs, option = [], [], ""
    for word in words[start + 2 : words.index("&&", start)]:
        if word.startswith("--"):
            option = word
        elif option == "--wait-for-files":
            inputs.append(word)
        elif option == "--wait-for-files-file":
            with open(word) as file:
                inputs += file.read().splitlines()
        if option not in DROPPED:
            arguments.append(inside(word) if os.path.isabs(word) else word)
    arguments += ["--cores", str(properties["threads"])]
    # The first file is snakemake's own directory.
    return properties, variables, arguments, [inside(f) for f in inputs if not f.startswith(os.path.abspath(".snakemake") + "/")]


def inside(path):
    """A path as it is below the working directory."""
    relative = os.path.relpath(path)
    if relative.startswith(".."):
        raise Refused(f"{path} is not in the working directory: a job gets only files that are")
    return relative


def sizes(paths):
    """The files at and below some paths, with their sizes."""
    found = {}
    for path in paths:
        if os.path.isdir(path):
            for top, _, names in os.walk(path):
                found |= {os.path.join(top, n): os.path.getsize(os.path.join(top, n)) for n in names}
        elif os.path.exists(path):
            found[path] = os.path.getsize(path)
    return found


def pack(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", dereference=True) as tar:
        for path in sorted(files):
            tar.add(path)
    return packed.getvalue()


def divide(files):
    """Returns the files that go with the job, packed, and the HTCJobs whose products it gets: those of the largest files, if not all fit."""
    left, jobs = dict(files), set()
    for path in sorted(files, key=files.get, reverse=True):
        if sum(left.values()) <= MOST:
            break
        if path in left and (made := producer(path)):
            jobs.add(made)
            left = {f: size for f, size in left.items() if producer(f) != made}
    packed = pack(left)
    if len(packed) > MOST:
        large = ", ".join(sorted(left, key=left.get)[-3:])
        raise Refused(f"the files that no rule has made are larger than {MOST >> 20} MiB together, compressed: {large}")
    if len(jobs) > MOST_JOBS:
        raise Refused(f"its large inputs are of {len(jobs)} HTCJobs: {MOST_JOBS} are possible; merge them in steps")
    for job in jobs:
        if "not found" in htcd("status", job).stderr:
            raise Refused(f"a large input was made by HTCJob {job}, which is gone: have its rule run again (--forcerun)")
    return packed, sorted(jobs)


def manifest(properties, variables, arguments, jobs, settings):
    """The HTCJob of a job."""
    rule, wants = properties.get("rule") or properties["groupid"], properties["resources"]
    word = re.sub("[^a-z0-9]+", "-", rule.lower()).strip("-")[:40] or "rule"
    spec = {**settings["spec"], "script": dict(settings["spec"]["script"])}
    if image := wants.get("htc_image"):
        spec["script"]["image"] = image
    plan = {"variables": variables, "arguments": arguments, "products": len(jobs)}
    with open(os.path.join(HERE, "node.py")) as node:
        spec["script"] |= {"command": "python3", "source": f"PLAN = {plan!r}\n{node.read()}"}
    spec["resources"] = {
        "cpus": properties["threads"],
        **{name: f"{wants[of]}M" for name, of in {"memory": "mem_mb", "disk": "disk_mb"}.items() if isinstance(wants.get(of), int)},
        **spec.get("resources", {}),
    }
    spec["inputs"] = spec.get("inputs", []) + [
        {"name": f"products-{i}.tar", "jobRef": {"name": job, "path": "products.tar", "proc": 0}} for i, job in enumerate(jobs)
    ]
    spec |= {"outputs": [{"path": "products.tar"}], "completeAfterOutput": True}
    name = f"{word}-{properties['jobid']}-{secrets.token_hex(4)}"[-63:].lstrip("-")
    return {
        "apiVersion": "htc.cern.ch/v1alpha1",
        "kind": "HTCJob",
        "metadata": {"name": name, "labels": {LABEL: directory(), "snakemake-rule": word}},
        "spec": spec,
    }


def main(jobscript):
    with open(os.path.join(HERE, "htcd.yaml")) as file:
        settings = yaml.safe_load(file)
    properties, variables, arguments, inputs = read(jobscript)
    packed, jobs = divide(sizes(settings.get("files", []) + inputs))
    job = manifest(properties, variables, arguments, jobs, settings)
    with tempfile.TemporaryDirectory() as work:
        with open(os.path.join(work, "files.tgz"), "wb") as file:
            file.write(packed)
        with open(os.path.join(work, "job.json"), "w") as file:
            json.dump(job, file)
        done = htcd("submit", os.path.join(work, "job.json"), "--input", os.path.join(work, "files.tgz"), "--name-only")
    if done.returncode:
        raise Refused(done.stderr.strip())
    print(job["metadata"]["name"])


if __name__ == "__main__":
    try:
        main(sys.argv[-1])
    except Refused as why:
        sys.exit(f"{os.path.basename(sys.argv[-1])}: {why}")
