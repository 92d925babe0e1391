
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
	if [ -e flow.dag.nodes.log ]; then
		complete_log
		set -- "$@" -DoRecov
	fi
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

# complete_log adds to the log of the nodes the submissions that it lacks: the schedd was killed after it had taken a job, before it wrote that
# down. DAGMan, which knows of the log alone, would send the node again. No answer of the schedd is no absence.
complete_log() {
	mine="DAGManJobId == ${CONDOR_ID%%.*} && DAGNodeName isnt undefined && Owner == \"$(id -un)\""
	until jobs=$(condor_q -allusers -constraint "$mine" -af ClusterId DAGNodeName); do sleep 10; done
	unknown=$(echo "$jobs" | compare unknown)
	history=$(setting HISTORY)
	if [ -n "$unknown" ] && [ -n "$history" ]; then # they have left the queue
		jobs="$jobs
$(_CONDOR_HISTORY=$history condor_history -constraint "$mine && member(ClusterId, {$unknown})" -limit 1000 -af ClusterId DAGNodeName)"
	fi
	# Twice, as there may have been events meanwhile.
	for _ in 1 2; do
		echo "$jobs" | sort -n | compare lacking >lost || exit 120
		cat lost >>flow.dag.nodes.log || exit 120
	done
	rm lost
}

# compare reads the clusters and names of nodes, and then the log of the nodes. It prints the clusters of which the log has events but no
# submission, or else the submissions that it lacks, each with a copy of those events, as DAGMan has ignored the ones before it.
compare() {
	awk -v what="$1" -v now="$(date '+%Y-%m-%d %H:%M:%S')" '
		!reading { if (NF == 2) { node[$1] = $2; clusters[++n] = $1 }; next }
		event == "" { event = $1; split($2, id, /[(.]/); cluster = id[2] + 0 }
		event == "000" && match($0, /DAG Node: |DAGNodeName = "/) {
			name = substr($0, RSTART + RLENGTH); sub(/[^A-Za-z0-9].*/, "", name); sent[name] = 1
		}
		{ text = text $0 "\n" }
		$0 == "..." {
			if (event == "000") known[cluster] = 1
			else if (!(cluster in known)) early[cluster] = early[cluster] text
			else if (cluster in early && index(early[cluster], text) == 1) early[cluster] = substr(early[cluster], length(text) + 1)
			event = text = ""
		}
		END {
			for (c in early) {
				if (what == "unknown" && c > 0 && !(c in known) && !(c in node)) { printf "%s%d", comma, c; comma = "," }
				if (what == "lacking" && c in known) printf "%s", early[c]
			}
			for (i = 1; what == "lacking" && i <= n; i++) {
				c = clusters[i]
				if (c in known || node[c] in sent) continue
				sent[node[c]] = 1
				printf "000 (%03d.000.000) %s Job submitted from host: <127.0.0.1:0>\n    DAG Node: %s\n...\n%s", c, now, node[c], early[c]
			}
		}' reading=0 - reading=1 flow.dag.nodes.log
}

main "$@"
