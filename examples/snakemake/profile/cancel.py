#!/usr/bin/env python3
"""Deletes those HTCJobs that have not ended, and has Snakemake forget them, so that it submits them again the next time."""

import json
import os
import sys

from products import LABEL, directory, htcd

INCOMPLETE = os.path.join(".snakemake", "incomplete")


def forget(names):
    for top, _, files in os.walk(INCOMPLETE):
        for file in files:
            try:
                with open(os.path.join(top, file)) as mark:
                    if json.load(mark).get("external_jobid") in names:
                        os.unlink(mark.name)
            except (OSError, ValueError):
                pass  # not such a file, or gone


def delete(names):
    listed = htcd("list", "--active", "--selector", f"{LABEL}={directory()}", "--output", "name").stdout
    if active := names & {line.split("/")[-1] for line in listed.splitlines()}:
        deleted = htcd("delete", *sorted(active))
        print(deleted.stdout + deleted.stderr, end="")


if __name__ == "__main__":
    forget(set(sys.argv[1:]))
    delete(set(sys.argv[1:]))
