
# From here on the text is the same for every factory. It hands the schedd a factory of the jobs and stays until that is gone: their inputs
# lie here. HTCondor starts this again after its own restarts. If they are nodes of a workflow ($nodes), it ends as DAGMan would.
main() {
	umask 077
	find_schedd # to which the factory goes
	if [ "$nodes" -eq 0 ] && [ -n "$(setting ALTERNATE_JOB_SPOOL)" ]; then
		echo "htcd: the schedd has ALTERNATE_JOB_SPOOL" >&2
		exit 123
	fi
	alone
	factory=
	sent=
	trap 'remove; exit 0' USR1 # HTCondor removes this
	if [ ! -s made ]; then
		make
	fi
	factory=$(cat made)
	every=5
	if [ "$nodes" -eq 0 ]; then
		[ -e opened ] || open || exit 1
		every=60 # nothing waits for the end
	fi
	while there "$factory"; do
		sleep "$every" 9>&- &
		wait $!
		[ -d "/proc/$PPID" ] || wanted # otherwise its schedd would say so
	done
	[ "$nodes" -eq 0 ] || [ "$(succeeded)" -ge "$nodes" ] || exit 1
	exit 0
}

# succeeded prints how many nodes have ended with 0, as their log says.
succeeded() {
	sed -n '/^005 (/{N;/Normal termination (return value 0)/s/^005 (\([0-9.]*\)).*/\1/p;}' nodes.log | sort -u | wc -l
}

# alone ends the one that was started before, should it have outlived its schedd, and waits until what it began has ended.
alone() {
	if read -r earlier 2>/dev/null <pid && [ "$earlier" != $$ ] && [ "$(readlink "/proc/$earlier/cwd")" = "$(pwd -P)" ]; then
		kill -9 "$earlier"
	fi
	exec 9>lock || exit 120
	flock 9 || exit 120
	echo $$ >pid || exit 120
}

# make sends the factory, once: where a try was interrupted, or has failed, the schedd is asked whether it has it.
make() {
	for pause in 10 60 0; do
		if [ -e begun ]; then
			until factory=$(condor_q -allusers -factory -constraint "$tag" -af ClusterId); do sleep 10; done
			if [ -z "$factory" ]; then
				until factory=$(_CONDOR_HISTORY=$(setting HISTORY) condor_history -limit 1 -constraint "$tag" -af ClusterId); do
					sleep 10
					wanted
				done
			fi
		else
			prepare
		fi
		if [ -z "$factory" ]; then
			wanted
			sent=$(condor_submit -terse made.sub) && factory=${sent%%.*}
		fi
		if [ -n "$factory" ]; then
			echo "$factory" >made.new && mv made.new made || exit 120
			return
		fi
		sleep "$pause"
	done
	exit 124
}

# wanted ends the launcher if its own job has left the queue or is being removed: a schedd that was killed does not end it. A question that
# fails is asked again.
wanted() {
	until own=$(condor_q -allusers -constraint "ClusterId == ${CONDOR_ID%%.*}" -af JobStatus); do sleep 10; done
	case $own in
	"" | 3)
		remove
		exit 0
		;;
	esac
}

# prepare makes ready what the jobs come to get, and notes that a factory may be sent.
prepare() {
	may_send || exit 122
	for archive in own.tgz nodes.tgz; do
		[ ! -f "$archive" ] || tar -xzf "$archive" || exit 120
	done
	{
		echo "htcd_here = $(pwd -P)" &&
			echo "htcd_launcher = ${CONDOR_ID%%.*}" &&
			cat factory.sub
	} >made.sub && : >begun && sync || exit 120
}

# open lets the factory make jobs: each in the directory that the schedd has for what it spools of it, and removes with it. A schedd that starts
# again looks at the factory's own, which has no number.
open() {
	condor_qedit "$factory" JobMaterializeLimit "$most" JobMaterializeMaxIdle "$idle" \
		Iwd "ifThenElse(isUndefined(ProcId), \"/\", strcat(\"$(setting SPOOL)/\", ClusterId % 10000, \"/\", ProcId % 10000, \"/cluster\", ClusterId, \".proc\", ProcId, \".subproc0\"))" \
		>/dev/null && : >opened
}

# there reports whether the schedd has the factory: it has until all of its jobs have left the queue. No answer is no absence.
there() {
	found=$(condor_q -allusers -factory -constraint "ClusterId == $1" -af ClusterId) || return 0
	[ -n "$found" ]
}

# remove ends the factory, also one that was sent just now. A schedd that starts again has forgotten its own removal, and goes by the attribute.
remove() {
	factory=${factory:-${sent%%.*}}
	[ -z "$factory" ] || {
		condor_qedit "$factory" JobMaterializePaused 3
		condor_rm "$factory"
	} >/dev/null
}

main "$@"
