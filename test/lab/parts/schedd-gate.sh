#!/bin/sh
# Stands where condor_master expects the schedd, so that a schedd that was stopped stays away until it is wanted,
# while the rest of HTCondor runs on.
down=$(dirname "$0")/schedd-down
while [ -e "$down" ]; do
	sleep 0.1
done
exec /usr/sbin/condor_schedd "$@"
