#!/bin/sh
# The node's apptainer. HTCondor points each job's cache into its own scratch directory, so that every job would unpack
# its image anew, for seconds; this node keeps what is unpacked, for whoever may write there.
if [ -w /var/cache/apptainer ]; then
	export APPTAINER_CACHEDIR=/var/cache/apptainer SINGULARITY_CACHEDIR=/var/cache/apptainer
fi
exec "/usr/bin/${0##*/}" "$@"
