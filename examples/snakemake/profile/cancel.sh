#!/bin/sh
# Snakemake waits for 2 s only; what cancel.py says is in a log.
nohup "$(dirname "$0")/cancel.py" "$@" </dev/null >>.snakemake/htcd-cancel.log 2>&1 &
