#!/bin/sh
# The node's apptainer. HTCondor points each job's cache into its own scratch directory, so that every job would unpack
# its image each time, for seconds; this node keeps unpacked images, for each account that has a directory there.
for dir in /var/cache/apptainer/*; do
	if [ -w "$dir" ]; then
		export APPTAINER_CACHEDIR="$dir" SINGULARITY_CACHEDIR="$dir"
	fi
done
exec "/usr/bin/${0##*/}" "$@"
