
# From here on the text is the same for every DAG. HTCondor starts this again after its own restarts, and DAGMan then goes on.
# A DAG that has ended without the schedd's notice ends again in the same way: nothing of it runs again.
main() {
	max_jobs=${1:-$max_jobs} # htcd may have changed it since
	umask 077
	find_schedd # to which DAGMan sends the nodes
	if ! command -v condor_dagman >/dev/null; then
		echo "htcd: there is no condor_dagman on this host" >&2
		exit 121
	fi
	alone
	echo $$ >dagman.pid || exit 120
	# flow.dag is there only when everything else is.
	if [ ! -f flow.dag ]; then
		may_send || exit 122
		tar -xzf nodes.tgz && mv flow.dag.new flow.dag || exit 120
	fi
	# One without nodes is sent to see whether others could run.
	[ -s flow.dag ] || exit 0

	export _CONDOR_DAGMAN_LOG=flow.dag.dagman.out
	export _CONDOR_MAX_DAGMAN_LOG=0
	export _CONDOR_DAGMAN_USE_STRICT=0
	# What waits for a parent's end waits as long.
	export _CONDOR_DAGMAN_USER_LOG_SCAN_INTERVAL="$seconds"
	# So many nodes are sent each time.
	[ "$submits" -eq 0 ] || export _CONDOR_DAGMAN_MAX_SUBMITS_PER_INTERVAL="$submits"
	export _CONDOR_DAGMAN_QUEUE_UPDATE_INTERVAL=5
	# A sequence that has begun goes first.
	export _CONDOR_DAGMAN_SUBMIT_DEPTH_FIRST=True
	# From a rescue file it would run what has failed again.
	export _CONDOR_DAGMAN_MAX_RESCUE_NUM=0
	set -- -p 0 -f -l . -Lockfile flow.dag.lock -AutoRescue 0 -DoRescueFrom 0 -Dag flow.dag -Suppress_notification \
		-CsdVersion "$(condor_version | head -n 1)" -Dagman "$(command -v condor_dagman)"
	# Its lock is gone as soon as it has ended, its log of the nodes stays.
	[ ! -e flow.dag.nodes.log ] || set -- "$@" -DoRecov
	[ "$max_idle" -eq 0 ] || set -- "$@" -MaxIdle "$max_idle"
	[ "$max_jobs" -eq 0 ] || set -- "$@" -MaxJobs "$max_jobs"
	exec condor_dagman "$@"
}

# alone ends the DAGMan that was started before, should it have outlived its schedd: HTCondor would end the DAG if there were two.
alone() {
	read -r earlier 2>/dev/null <dagman.pid || return 0
	while [ "$earlier" != $$ ] && [ "$(readlink "/proc/$earlier/cwd")" = "$(pwd -P)" ]; do
		kill "$earlier" 2>/dev/null
		sleep 1
	done
}

main "$@"
