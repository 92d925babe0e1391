
# From here on the text is the same for every job. All of it is one function, read before
# it runs: the script of the job can write into this directory.
main() {
	PATH=${PATH:-/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin}
	export PATH
	scratch=${_CONDOR_SCRATCH_DIR:-$(pwd)}
	cd "$scratch" || exit 125
	mkdir -m 700 .htcd .htcd/work

	# The tokens are kept from the script: read now, gone from the disk. What follows them, in a file that this job alone has, are
	# its variables: contained reads on.
	secret=
	pull_token=
	exec 7</dev/null
	gone=
	for file in token ".own-$proc"; do
		[ -f "$file" ] || continue
		exec 7<"$file"
		gone="$gone $file"
		if [ -n "$node" ] && [ "$file" != token ]; then
			read_place
			continue
		fi
		IFS= read -r secret <&7 || :
		IFS= read -r pull_token <&7 || :
	done
	if [ -n "$node" ] && [ -f .pull-token ]; then
		IFS= read -r pull_token <.pull-token || :
		gone="$gone .pull-token"
	fi
	# shellcheck disable=SC2086 # names without spaces
	[ -z "$gone" ] || rm -f $gone
	[ -z "$credentials" ] || place_credentials

	# And so is the sender, which runs outside the container: what stands under its name when the script has
	# ended may be the script's. Open, it stays what it was.
	sender=
	if [ -f htcd-send ]; then
		chmod 700 htcd-send
		exec 8<htcd-send
		rm -f htcd-send
		sender=/proc/self/fd/8
	fi

	cluster=0
	number=$proc
	outputs=
	named=
	max_output=0
	starts=0
	if [ -r "${_CONDOR_JOB_AD:-}" ]; then
		while read -r key _ value; do
			case $key in
			ClusterId) cluster=$value ;;
			ProcId) number=$value ;;
			MaxTransferOutputMB) max_output=$value ;;
			NumJobStarts) starts=$value ;;
			TransferOutput) # "a, b/c,d/": letters, digits and signs that mean nothing to a shell
				named=1
				outputs=$(printf '%s\n' "$value" | sed 's/[",]/ /g')
				;;
			esac
		done <"$_CONDOR_JOB_AD"
	fi
	jobid=$cluster.$number
	# HTCondor holds a job that does not leave this directory, even one that is killed.
	[ -z "$declared$node" ] || mkdir -p ".htcd-out/$starts"

	name_inputs
	[ -z "$node" ] || enter
	came=
	[ -z "$inputs" ] || for stamp in $(stamps); do
		came="$came $stamp "
	done
	run "$@"
	# What came from Secrets is not brought back, whatever the script made of it.
	for file in $secrets; do
		rm -rf "./$file"
	done
	drop_moved
	[ -z "$plugins" ] || leave_credentials
	clear_away
	leave_files
	missing=
	if [ -n "$declared$node" ]; then
		gather
	elif [ -z "$named" ]; then
		shelter_names
	fi
	end=$rc
	[ -z "$node" ] || settle
	# Its time is over, or somebody ended it. Otherwise there was no container.
	if [ -n "$interactive" ] && { [ "$rc" -eq 0 ] || { [ "$rc" -gt 128 ] && [ "$rc" -lt 192 ]; }; }; then
		missing=$over
		url=
	fi
	if [ -z "$ended" ] && [ -n "$url" ] && deliverable; then
		# In a shell of its own: whatever breaks in it, the return code stays the script's.
		(call_back) || echo "htcd: the callback was not delivered; the cross-check will find the return code" >&2
	fi
	clear_away
	[ -z "$missing" ] || kill -"$missing" $$
	exit "$end"
}

# run runs the script in the container, and sets rc to its return code.
run() {
	rc=127
	ended=
	tool=
	for t in apptainer singularity; do
		if command -v "$t" >/dev/null 2>&1; then
			tool=$t
			break
		fi
	done
	if [ -z "$tool" ]; then
		echo "htcd: this node has neither apptainer nor singularity in $PATH; the script was not run" >&2
		return
	fi

	# A job has no HOME, and so no place for image layers but this one.
	APPTAINER_CACHEDIR=${APPTAINER_CACHEDIR:-$scratch/.htcd/cache}
	SINGULARITY_CACHEDIR=${SINGULARITY_CACHEDIR:-$APPTAINER_CACHEDIR}
	APPTAINER_TMPDIR=${APPTAINER_TMPDIR:-$scratch/.htcd}
	SINGULARITY_TMPDIR=${SINGULARITY_TMPDIR:-$APPTAINER_TMPDIR}
	# /tmp, /var/tmp and HOME: in memory, and small, unless they have a place.
	APPTAINER_WORKDIR=$scratch/.htcd/work
	SINGULARITY_WORKDIR=$APPTAINER_WORKDIR
	export APPTAINER_CACHEDIR SINGULARITY_CACHEDIR APPTAINER_TMPDIR SINGULARITY_TMPDIR APPTAINER_WORKDIR SINGULARITY_WORKDIR

	if [ -n "$login" ]; then
		fetch_image || return
	fi
	set -- "$@" "$scratch/script" "$proc"
	if [ -n "$interactive" ]; then
		set -- sleep "$interactive"
	elif [ -n "$keep" ]; then
		set -- sh -c "$keeper" sh "$keep" "$successes" "$@"
	fi
	set -- --env "HTCPROCID=$proc" "$image" "$@"
	for dir in $binds; do
		if [ -d "$dir" ]; then
			set -- --bind "$dir" "$@"
		fi
	done
	# They write the outputs that have URLs, outside of the container, when the script has ended.
	for plugin in $plugins; do
		set -- --bind "$scratch/$plugin:$scratch/$plugin:ro" "$@"
	done
	if has_gpus; then
		if [ -e /dev/kfd ] && [ ! -e /dev/nvidiactl ]; then
			set -- --rocm "$@"
		else
			set -- --nv "$@"
		fi
	fi
	puller=
	if [ -n "$credentials" ] && [ -n "$pull" ]; then
		# In this directory, whatever the script puts in its place; its files are new ones, and never followed links.
		[ -n "$login" ] || pull_once
		(cd .htcd/credentials && umask 077 && set -C && keep_pulling) </dev/null 7<&- >/dev/null 2>&1 &
		puller=$!
	fi
	contained --quiet exec --contain --ipc --pid --bind "$scratch" --pwd "$scratch" "$@" </dev/null 8<&- &
	child=$!
	exec 7<&-

	# HTCondor asks a job to end with SIGTERM, when it is removed, held or moved to
	# another node. What follows from that HTCondor knows better: no callback then.
	trap 'ended=1; end_script >/dev/null 2>&1 &' TERM INT QUIT
	wait "$child"
	rc=$?
	while kill -0 "$child" 2>/dev/null; do
		wait "$child"
		rc=$?
	done
	# A signal ends a wait, too. When the script ended at that moment its own code is still to be had.
	if [ -n "$ended" ] && [ "$rc" -gt 128 ]; then
		wait "$child" 2>/dev/null
		code=$?
		[ "$code" -eq 127 ] || rc=$code
	fi
	trap - TERM INT QUIT
	if [ -n "$puller" ]; then
		kill "$puller" 2>/dev/null
		wait "$puller" 2>/dev/null
	fi
}

# end_script asks the script to end. While apptainer sets a container up it loses signals, in some 50 ms of that time, and HTCondor would
# kill the job only 10 minutes later. So the script is asked again until it has run for a second.
end_script() {
	while kill -TERM "$child" && [ -r "/proc/$child/task/$child/children" ] && ! has_begun; do
		sleep 1
	done
}

# has_begun reports whether the script has run for a second: it is the child of the container's init, which is the tool's.
has_begun() {
	for init in $(children "$child"); do
		for script in $(children "$init"); do
			if read -r line <"/proc/$script/stat" && read -r up _ </proc/uptime; then
				# The 22nd field, the 20th behind the name in parentheses, is when it was started, in hundredths of a second.
				# shellcheck disable=SC2086 # fields
				set -- ${line##*) }
				[ "${up%.*}" -le $((${20:-0} / 100 + 1)) ] || return 0
			fi
		done
	done
	return 1
}

# children lists a process's, of all its threads.
children() {
	cat "/proc/$1/task"/*/children
}

# contained becomes the tool. The variables of the HTCJob have names of which only the inside of the container sees the
# end, so that none means anything to a program outside; and nothing in their values is replaced.
contained() {
	case $tool in
	apptainer) prefix=APPTAINERENV_ ;;
	*) prefix=SINGULARITYENV_ ;;
	esac
	if [ -f .environment ]; then
		export_lines <.environment
		rm -f .environment
	fi
	export_lines <&7
	exec 7<&-
	[ -z "$node" ] || export "${prefix}outpath=$scratch" "${prefix}HTC_RESULTS=$scratch/.htcd-results"
	if [ -n "$credentials" ]; then
		export "${prefix}HTC_CREDENTIALS=$scratch/.htcd/credentials"
		for credential in $credentials; do
			[ -z "${credential#*:}" ] || export "$prefix${credential#*:}=$scratch/.htcd/credentials/${credential%%:*}"
		done
	fi
	exec "$tool" "$@"
}

# export_lines exports the variables on its standard input for the inside of the container.
export_lines() {
	while IFS= read -r line; do
		export "$prefix$line"
		APPTAINER_NO_EVAL=1
		SINGULARITY_NO_EVAL=1
		export APPTAINER_NO_EVAL SINGULARITY_NO_EVAL
	done
}

# has_gpus reports whether HTCondor gave this job GPUs. The machine's ad says so; where there is none, the environment
# does, in which 10000 or none stands for none.
has_gpus() {
	gpus=
	if [ -r "${_CONDOR_MACHINE_AD:-}" ]; then
		while read -r key _ value; do
			case $key in
			AssignedG[Pp][Uu][Ss]) gpus=$value ;;
			esac
		done <"$_CONDOR_MACHINE_AD"
	else
		gpus=${_CONDOR_AssignedGPUs:-${CUDA_VISIBLE_DEVICES:-}}
	fi
	case $gpus in
	'' | '""' | undefined | 10000 | none) return 1 ;;
	esac
}

# clear_away removes the wrapper's own directory, with what the script left in /tmp, /var/tmp and HOME. Some programs,
# such as Go, leave directories there that nobody may write to.
clear_away() {
	rm -rf .htcd 2>/dev/null || {
		chmod -R u+rwX .htcd
		rm -rf .htcd
	} 2>/dev/null || :
}

# leave_files removes anything that is no file, and links to it: HTCondor would read a FIFO without end, and keep the slot.
leave_files() {
	find . -xdev ! -type f ! -type d -exec sh -c \
		'for f; do [ ! -e "$f" ] || [ -f "$f" ] || [ -d "$f" ] || rm -f "$f"; done' sh {} + 2>/dev/null || :
}

# shelter_names gives other names to files that HTCondor would not bring back: it joins names with commas, in one line,
# and takes the blanks off their ends; and a job whose list of files holds $$(X) it puts on hold when the schedd starts again. What
# they are called goes along in a list, and htcd gives the names back.
shelter_names() {
	rm -rf .htcd-names .htcd-name-* # the script may have made such
	n=0
	for f in ./* ./.[!.]* ./..?*; do
		case $f in
		*,* | *[[:cntrl:]]* | './ '* | *' ' | *'$$'*) ;;
		*) continue ;;
		esac
		if [ -f "$f" ] && mv -f "$f" ".htcd-name-$n"; then
			printf '%s\0' "${f#./}" >>.htcd-names
			n=$((n + 1))
		fi
	done
}

# deliverable reports whether HTCondor can bring back what the job leaves, by what the job's ad says. If it cannot, it holds
# the job: then this is no end that htcd should be told of.
deliverable() {
	for file in $outputs; do
		if [ ! -e "$file" ]; then
			echo "htcd: there is no $file, which transfer_output_files names: HTCondor will hold this job" >&2
			return 1
		fi
	done
	case $max_output in
	0 | *[!0-9]*) return 0 ;;
	esac
	bytes=0
	for size in $(sizes 2>/dev/null); do
		bytes=$((bytes + size))
	done
	if [ "$bytes" -gt $((max_output * 1048576)) ]; then
		echo "htcd: this job leaves $bytes bytes, and the site allows $max_output MiB: HTCondor will hold it" >&2
		return 1
	fi
}

# name_inputs gives inputs from URLs their names: HTCondor calls them as the URLs end. One may have another's name.
name_inputs() {
	for move in $moves; do
		mv -f "./${move#*/}" ".htcd/${move%%/*}"
	done
	for move in $moves; do
		mv -f ".htcd/${move%%/*}" "./${move%%/*}"
	done
}

# drop_moved removes what name_inputs has named, unless the script has changed it: HTCondor would take it for output.
drop_moved() {
	[ -n "$moves" ] || return 0
	for stamp in $(stamps); do
		case " $moves" in
		*" ${stamp##*/}/"*) ;;
		*) continue ;;
		esac
		case $came in
		*" $stamp "*) rm -f "./${stamp##*/}" ;;
		esac
	done
}

# stamps lists the inputs with their sizes and times, by which HTCondor sees whether they have changed.
stamps() {
	for file in $inputs; do
		[ ! -f "$file" ] || stat -L -c '%s/%Y/%n' "$file"
	done 2>/dev/null
}

# sizes lists the sizes of the files that HTCondor will bring back.
sizes() {
	if [ -n "$named" ]; then
		for file in _condor_stdout _condor_stderr $outputs; do
			find -H "$file" -path .htcd-out/.url -prune -o ! -type d -exec stat -L -c %s {} +
		done
	else
		# Not what came with the job, nor what HTCondor keeps here itself.
		set --
		for stamp in $(stamps); do
			case $came in
			*" $stamp "*) set -- "$@" ! -name "${stamp##*/}" ;;
			esac
		done
		find . "$@" ! -name . -prune ! -type d ! -name script ! -name job.sh ! -name condor_exec.exe \
			! -name '.*.ad' ! -name .chirp.config -exec stat -L -c %s {} +
	fi
}

main "$@"
