#!/bin/sh
# The node's apptainer. HTCondor points each job's cache into its own scratch directory, so that every job would unpack
# its image each time, for seconds; this node keeps unpacked images, for anybody who may write there.
if [ -w /var/cache/apptainer ]; then
	export APPTAINER_CACHEDIR=/var/cache/apptainer SINGULARITY_CACHEDIR=/var/cache/apptainer
fi
exec "/usr/bin/${0##*/}" "$@"
