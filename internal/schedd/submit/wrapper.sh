
# From here on the text is the same for every job.
#
# The script sees nothing of HTCondor's directory for the job, where HTCondor and this wrapper read, run and write, but one directory in it:
#
#	.htcd/job          in the container, it is the job's directory, with what came along
#	.htcd/work         its /tmp, /var/tmp and HOME
#	.htcd/credentials  under the same path
#
# When no process of the script is left, bring_back moves what it leaves to where HTCondor looks for output.
main() {
	PATH=${PATH:-/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin}
	export PATH
	scratch=${_CONDOR_SCRATCH_DIR:-$PWD}
	cd -P "$scratch" || exit 125
	home=$PWD
	cd "$scratch" || exit 125
	again=
	if [ -n "$checkpoint" ] && resume; then
		again=1
	else
		if [ -e .htcd ] || [ -h .htcd ]; then
			rm -rf .htcd
		fi
		mkdir -m 700 .htcd .htcd/job .htcd/work .htcd/new .htcd/held || exit 125
	fi
	# A factory's jobs share the files of their items.
	for file in .own-of-*; do
		[ -f "$file" ] || continue
		(umask 077 && sed -n "1,2p;/^ $proc\$/,/^ /{/^ /!p;}" "$file" >".own-$proc") && rm -f "$file" || exit 125
	done
	[ -z "$checkpoint" ] || remember

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
	environment=
	if [ -f .environment ]; then
		exec 9<.environment
		gone="$gone .environment"
		environment=1
	fi
	# So is the sender, which runs outside the container.
	sender=
	if [ -f htcd-send ]; then
		chmod 700 htcd-send
		exec 8<htcd-send
		[ -z "$nodes" ] || become_node
		gone="$gone htcd-send"
		sender=/proc/self/fd/8
	fi
	# shellcheck disable=SC2086 # names without spaces
	[ -z "$gone" ] || rm -f $gone
	[ -z "$credentials" ] || place_credentials

	read_ads
	jobid=$cluster.$number
	if [ -n "$tells" ] && [ -n "$url" ] && [ -z "$again" ]; then
		(sleep 1 && [ -d .htcd/new ] && ! [ -e .htcd/over ] && tell_start) </dev/null >/dev/null 2>&1 7<&- &
	fi
	[ -z "$evictable" ] || [ ! -d .htcd-out ] || mv -f .htcd-out .htcd/left
	# HTCondor holds a job that does not leave this directory, even one that is killed.
	[ -z "$declared$node" ] || mkdir -p ".htcd-out/$starts"
	! command -v take_parts >/dev/null || take_parts

	if [ -n "$again" ]; then
		recall
	else
		name_inputs
		[ -z "$node" ] || enter
		came=
		# Who asks are drop_moved and deliverable.
		[ -z "$inputs" ] || [ "$moves$max_output" = 0 ] || for stamp in $(stamps); do
			came="$came $stamp "
		done
		[ -z "$archives" ] || unpack
	fi
	[ "$program" = script ] || rm -f script # nothing is in it
	enclose
	[ -n "$again" ] || make_executable
	directories
	had=$found
	[ -z "$checkpoint" ] || place_checkpoint
	[ -z "$evictable" ] || place_left
	[ -z "$nodes" ] || span
	ended=
	returned=
	began=
	mounted=$again
	part='the script'
	stays="$successes $checkpoint"
	arguments "$@" ${program:+"$scratch/$program"}
	trap - TERM INT QUIT
	[ "${rank:-0}" = 0 ] || stay
	true 2>/dev/null >.htcd/over # on a full disk, : would end the shell
	# Somebody has ended the wait with kill, and so says that the work is done.
	if [ -n "$interactive" ] && [ -z "$ended" ] && [ "$rc" -eq 143 ]; then
		interactive=
		rc=${successes%% *}
	fi
	missing=
	saving=
	if [ "$rc" = "$checkpoint" ] && save; then
		exit "$rc"
	fi
	tell_dropped
	bring_back
	cd "$scratch" || exit 125
	drop_moved
	[ -z "$plugins" ] || leave_credentials
	if [ -n "$declared$node" ]; then
		gather
	elif [ -z "$named" ]; then
		drop_cores
		shelter_names
	fi
	end=$rc
	[ -z "$node" ] || settle
	# Its time is over, or somebody ended it. Otherwise there was no container.
	if [ -n "$interactive" ] && { [ "$rc" -eq 0 ] || { [ "$rc" -gt 128 ] && [ "$rc" -lt 192 ]; }; }; then
		missing=$over
		url=
	fi
	if [ -n "$imageless" ] && [ "$rc" = 255 ] && [ -z "$missing$ended${always:-}" ]; then
		missing=$noimage
	fi
	if [ -z "$ended" ] && [ -n "$url" ]; then
		held=
		deliverable || held=1
		# HTCondor holds a node whose files it cannot write to their URLs: only it knows the end.
		[ -z "$node" ] || [ "$sent" = ' ' ] || [ "$end" -ne 0 ] || held=1
		# In a shell of its own: whatever breaks in it, the return code stays the script's.
		(call_back) || say "the callback was not delivered; the cross-check will find the return code"
	fi
	clear_away
	[ -z "$missing" ] || kill -"$missing" $$
	exit "$end"
}

# say prints a line of htcd's own. The last one that the script has written may lack its end.
say() {
	[ -z "$(tail -c 1 "$scratch/_condor_stderr" 2>/dev/null | tr '\000' 0)" ] || echo >&2
	echo "htcd: $1" >&2
}

# read_ads reads what HTCondor says of the job and of its place. A shell may read a file byte by byte, so grep has a first look.
read_ads() {
	cluster=0
	number=$proc
	outputs=
	named=
	max_output=0
	starts=0
	cores=1
	retry=0
	on_exit_hold=
	# The machine's ad says which GPUs HTCondor gave this job; where there is none, the environment does.
	gpus=${_CONDOR_AssignedGPUs:-${CUDA_VISIBLE_DEVICES:-}}
	[ ! -r "${_CONDOR_MACHINE_AD:-}" ] || gpus=
	attributes='ClusterId|ProcId|MaxTransferOutputMB|NumJobStarts|CpusProvisioned|NumJobCompletions|OnExitHold|TransferOutput|AssignedG[Pp][Uu][Ss]'
	while IFS= read -r line; do
		value=${line#* = }
		line=${line%% = *}
		case $line in
		"${_CONDOR_MACHINE_AD:-}:AssignedG"*) gpus=$value ;;
		"${_CONDOR_MACHINE_AD:-}:"*) ;;
		*:ClusterId) cluster=$value ;;
		*:ProcId) number=$value ;;
		*:MaxTransferOutputMB) max_output=$value ;;
		*:NumJobStarts) starts=$value ;;
		*:CpusProvisioned) cores=$value ;;
		*:NumJobCompletions) retry=$value ;;
		*:OnExitHold) [ "$value" = false ] || on_exit_hold=1 ;;
		*:TransferOutput) # "a, b/c,d/": letters, digits and signs that mean nothing to a shell
			named=1
			set_outputs "$value"
			;;
		esac
	done <<-end
		$(LC_ALL=C grep -E "^($attributes) = " "${_CONDOR_JOB_AD:-/dev/null}" "${_CONDOR_MACHINE_AD:-/dev/null}" 2>/dev/null)
	end
}

# set_outputs sets outputs to the names in a list of HTCondor's.
set_outputs() {
	set -f
	IFS='",'
	# shellcheck disable=SC2086 # it is to be split
	set -- $1
	unset IFS
	set +f
	outputs=$*
}

# enclose moves what came along to where the script sees it. What it may read of HTCondor's own, it gets as copies.
enclose() {
	ticket=
	case ${KRB5CCNAME:-} in
	"FILE:$scratch"/*/*) ;;
	"FILE:$scratch"/*) ticket=${KRB5CCNAME#"FILE:$scratch"/} ;;
	esac
	own=script # what a script makes of it is output only where HTCondor's list names it
	[ -z "$named" ] || [ -n "$declared$node" ] || own=
	set --
	for f in ./* ./.[!.]* ./..?*; do
		[ -e "$f" ] || continue
		case ${f#./} in
		"$own" | .htcd* | .credential-* | .environment | "${0##*/}" | "$ticket" | .*.ad | .*.ad.tmp | .chirp.config | .condor* | _condor* | condor_exec.exe) continue ;;
		# MOUNT_UNDER_SCRATCH
		tmp) same_file "$f" /tmp && continue ;;
		var) same_file "$f/tmp" /var/tmp && continue ;;
		esac
		set -- "$@" "$f"
		[ $# -lt 200 ] || {
			place "$@"
			set --
		}
	done
	[ $# -eq 0 ] || place "$@"
	set --
	[ ! -f "$own" ] || set -- "$own"
	for f in .*.ad .chirp.config; do
		[ ! -f "$f" ] || set -- "$@" "$f"
	done
	if [ $# -gt 0 ] && [ -n "$again" ]; then # into what was the script's, where its links would be followed
		cp -p "$@" .htcd/new/ && cd .htcd/new && move_to "$scratch/.htcd/job"
		cd "$scratch" || exit 125
	elif [ $# -gt 0 ]; then
		cp -p "$@" .htcd/job/ || [ ! -f "$own" ] || cp -p "$own" .htcd/job/ || no_room # the beginning of a script may succeed
	fi
	[ -z "$ticket" ] || show_ticket
}

# no_room ends a job that cannot have all of its script and variables.
no_room() {
	say "the script, or its variables, could not be copied on this node: the script was not run"
	clear_away
	exit 125
}

# place moves inputs to where the script sees them: over files from archives, but not over directories.
place() {
	mv -f "$@" .htcd/job/ || [ -z "$archives" ] || [ -n "$again" ] || {
		say "an archive among the inputs has something else that is called like another input: the script was not run"
		exit 125
	}
}

# make_executable lets an input be the program that is run. One in an archive has the rights that it has there.
make_executable() {
	case $program in
	script | */*) return ;;
	esac
	[ ! -f ".htcd/job/$program" ] || [ -h ".htcd/job/$program" ] || chmod u+x ".htcd/job/$program"
}

# matches reports whether the name $1 is one at which a line of $2, the pattern of a path, begins.
matches() {
	while IFS= read -r path; do
		# shellcheck disable=SC2254 # a pattern
		case $1 in
		${path%%/*}) return 0 ;;
		esac
	done <<-end
		$2
	end
	return 1
}

# same_file reports whether two names are of the same file.
same_file() {
	# shellcheck disable=SC3013 # all shells have it
	[ "$1" -ef "$2" ]
}

# show_ticket gives the script the Kerberos ticket that HTCondor keeps in its directory, as a new file.
show_ticket() {
	cp -p "$ticket" .htcd/ticket && cp -p .htcd/ticket .htcd/shown && mv -f -T .htcd/shown ".htcd/job/$ticket"
}

# keep_ticket does so again whenever HTCondor has a new one.
keep_ticket() {
	trap 'kill "$nap"; exit' TERM
	while kill -0 $$; do
		sleep 20 &
		nap=$!
		wait "$nap"
		# shellcheck disable=SC3013 # all shells have it
		[ ! "$ticket" -nt .htcd/ticket ] || show_ticket
	done
}

# directories sets found to those that the script's directory has, with simple names alone.
directories() {
	found=
	for f in .htcd/job/*; do
		case ${f##*/} in
		*[!A-Za-z0-9._+=@%~-]*) continue ;;
		esac
		[ ! -d "$f" ] || [ -h "$f" ] || found=$found/${f##*/}
	done
	found=$found/
}

# tell_dropped says which directories of the script are not brought back, as the job names no outputs.
tell_dropped() {
	[ -z "$declared" ] && { [ -n "$node" ] || [ -z "$named" ]; } || return 0
	directories
	IFS=/
	# shellcheck disable=SC2086 # names of letters
	set -- $found
	unset IFS
	dropped=
	for f; do
		[ -n "$f" ] || continue
		case $had in
		*"/$f/"*) continue ;;
		esac
		! matches "$f" "${handed:-}" || continue # later steps pull it
		[ "${#dropped}" -lt 500 ] || {
			dropped="$dropped and others"
			break
		}
		dropped="$dropped $f"
	done
	[ -z "$dropped" ] || say "directories are brought back only if spec.outputs names them, and these are dropped:$dropped"
}

# bring_back moves what the script leaves into HTCondor's directory, where HTCondor and the rest of this wrapper follow names and links
# outside of the container. No process of the script is left, but a process of another job may hold a directory of this one (open
# files can be passed from container to container) and change the names in it at any moment. So directories are made anew; no path
# leads through one that was the script's; and what something is, is looked at where nobody else can replace it.
bring_back() {
	end_rest
	[ -z "$archives" ] || drop_unpacked
	kept=1
	linked=
	wanted=
	take
	[ -z "$linked" ] || {
		wanted=all # a link may lead anywhere
		take
		resolve
	}
}

# end_rest ends what is left of the script on a node whose containers have no PID namespace of their own: whoever sees its directories.
end_rest() {
	seen=${home##*/}
	case $seen in
	dir_*) ;;
	*) # dir_123/scratch
		seen=${home%/*}
		seen=${seen##*/}/${home##*/}
		;;
	esac
	tries=10
	while [ "$tries" -gt 0 ]; do
		set --
		for process in /proc/[0-9]*; do # of this account
			[ "$process" = "/proc/$$" ] || ! kill -0 "${process#/proc/}" || set -- "$@" "$process/mountinfo"
		done
		rest_of=
		[ $# -eq 0 ] || rest_of=$(grep -lsF "/$seen/.htcd/" "$@")
		[ -n "$rest_of" ] || break
		for process in $rest_of; do
			process=${process#/proc/}
			kill -KILL "${process%/*}"
		done
		tries=$((tries - 1))
		sleep 1
	done 2>/dev/null
}

# take moves what is wanted, and not there already, from the script's directory to this one. It sets linked if there are links.
take() {
	open_up .htcd/job
	cd "$scratch/.htcd/job" && move_to "$scratch/.htcd/new" is_taken
	renew
	if [ -z "$kept" ]; then
		say "what the script has left could not be taken out of its directories: it is not brought back"
	elif cd "$scratch/.htcd/new"; then
		move_to "$scratch"
	fi
	cd "$scratch" || exit 125
}

# move_to moves all that is in the current directory, or those things of which $2 is true, to the directory $1.
move_to() {
	to=$1
	only=${2:-true}
	set --
	for f in ./* ./.[!.]* ./..?*; do
		{ [ -e "$f" ] || [ -h "$f" ]; } || continue
		"$only" "${f#./}" || continue
		[ -h "$f" ] || [ ! -d "$f" ] || open_up "$f" # others cannot be moved
		set -- "$@" "$f"
		[ $# -lt 200 ] || {
			mv -f "$@" "$to/"
			set --
		}
	done
	[ $# -eq 0 ] || mv -f "$@" "$to/"
}

# is_taken reports whether something of the script's directory is brought back: not what came from Secrets, nor what is there already or
# has a name that this wrapper uses, nor a directory that neither the outputs nor a link can be in.
is_taken() {
	case $1 in
	.htcd-results) ;;
	.htcd* | .credential-*) return 1 ;;
	esac
	case " $secrets " in
	*" $1 "*) return 1 ;;
	esac
	! [ -e "$scratch/$1" ] && ! [ -h "$scratch/$1" ] || return 1
	paths=$declared
	if [ -n "$saving" ]; then
		[ -z "$wanted" ] || return 0
		paths=$saved
	else
		[ -z "$wanted$node" ] && { [ -z "$named" ] || [ -n "$declared" ]; } && [ -d "$1" ] && [ ! -h "$1" ] || return 0
	fi
	matches "$1" "$paths"
}

# renew makes the directories in .htcd/new anew, all the way down: it moves them aside, and what is in them to new ones of their names.
renew() {
	from_0=
	to_0=$scratch/.htcd/new
	next=0
	last=0
	while [ "$next" -le "$last" ]; do
		eval "from=\$from_$next into=\$to_$next"
		unset "from_$next" "to_$next"
		[ -z "$from" ] || {
			open_up "$from"
			cd "$from" && move_to "$into"
		}
		aside=$scratch/.htcd/held/$wanted$next
		next=$((next + 1))
		cd "$into" || continue
		set --
		for f in ./* ./.[!.]* ./..?*; do
			if [ -h "$f" ]; then
				linked=1
			elif [ -d "$f" ]; then
				last=$((last + 1))
				eval "from_$last=\$aside/\${f#./} to_$last=\$into/\${f#./}"
				set -- "$@" "$f"
				[ $# -lt 200 ] || {
					set_aside "$@"
					set --
				}
			elif [ -e "$f" ] && [ ! -f "$f" ]; then
				rm -f "$f" # HTCondor would read a FIFO without end, and keep the slot
			elif [ -f "$f" ] && [ ! -r "$f" ]; then
				chmod u+rw "$f" # HTCondor would hold the job, and a second run could not write it
			fi
		done
		set_aside "$@"
	done
}

# open_up makes a directory one that can be read and changed.
open_up() {
	{ [ -r "$1" ] && [ -w "$1" ] && [ -x "$1" ]; } || chmod u+rwx "$1"
}

# set_aside moves directories of the current one to $aside, and makes new ones.
set_aside() {
	[ $# -gt 0 ] || return 0
	for directory; do
		open_up "$directory" # others cannot be moved
	done
	{ mkdir -p "$aside" && mv -f "$@" "$aside/" && mkdir "$@"; } || kept=
}

# resolve replaces each link by what it leads to, if that is in this directory, and removes the others. A link that is moved may lead
# elsewhere, so those to files become further names of the files.
resolve() {
	# shellcheck disable=SC2016 # it is for another shell
	set -- -exec sh -c 'directories=$1; shift
	for link; do
		file=
		# The kernel follows 40 links at most. readlink has no end with a link x to x/y.
		[ ! -e "$link" ] || file=$(readlink -f "$link" && echo .)
		file=${file%??}
		rm -f "$link"
		case $file in
		"$0"/.htcd* | "$0"/.condor* | "$0"/.credential-*) ;;
		"$0"/?*)
			if [ -f "$file" ]; then
				ln "$file" "$link" 2>/dev/null || ln -s "$file" "$link"
			elif [ -d "$file" ]; then
				case $directories$link in
				all* | "top./${link##*/}") ln -s "$file" "$link" ;;
				esac
			fi
			;;
		esac
	done' "$home"
	if [ -n "$saving" ]; then
		printf '%s\n' "$saved" | while IFS= read -r path; do
			find "./${path%%/*}" -type l "$@" all {} +
		done
		return
	fi
	# Patterns may lead through links to directories. HTCondor holds a job with such a link in a directory, and passes over others.
	if [ -n "$declared$node" ]; then
		find . -path ./.htcd -prune -o -type l "$@" all {} +
	elif [ -n "$named" ]; then
		find . -path ./.htcd -prune -o -type l "$@" top {} +
	else
		find . ! -name . -prune -type l "$@" none {} +
	fi
}

# item prints the value of a variable that this job alone has. What reads on from descriptor 7 later has its own place in the file.
item() {
	while IFS= read -r line; do
		case $line in
		"$1="*)
			printf '%s' "${line#*=}"
			return
			;;
		esac
	done </proc/self/fd/7
}

# run runs the script, or another $part of the job, in the container, and sets rc to its return code.
run() {
	rc=127
	inside=
	imageless=
	tool=
	for t in apptainer singularity; do
		if command -v "$t" >/dev/null 2>&1; then
			tool=$t
			break
		fi
	done
	if [ -z "$tool" ]; then
		say "this node has neither apptainer nor singularity in $PATH; the script was not run"
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
		fetch_image || {
			imageless=1
			return
		}
	fi
	case $image in
	/*) [ -e "$image" ] || imageless=1 ;;
	esac
	if [ -n "$interactive" ]; then
		set -- sleep "$interactive"
	elif [ -n "$keep" ] && [ -n "$stays" ]; then
		set -- sh -c "$keeper" sh "$keep" "$stays" "$part" "$@"
	fi
	[ -z "$nodes" ] || set -- "$scratch/.htcd/multi/htcd" multinode run "$scratch/.htcd/multi" "$@"
	[ -z "$timed" ] || [ -n "$returned" ] || began=$(date +%s)
	set -- --env "HTCPROCID=$proc" "$image" "$@"
	for dir in $binds; do
		if [ -d "$dir" ]; then
			set -- --bind "$dir" "$@"
		fi
	done
	if [ -n "$credentials" ]; then
		[ -n "$mounted" ] || mkdir -p .htcd/job/.htcd/credentials
		set -- --bind "$scratch/.htcd/credentials" "$@"
	fi
	# HTCondor's transfer plugins read it, too.
	if [ -d .condor_creds ]; then
		[ -n "$mounted" ] || mkdir -p .htcd/job/.condor_creds
		set -- --bind "$scratch/.condor_creds:$scratch/.condor_creds:ro" "$@"
	fi
	if has_gpus; then
		if [ -e /dev/kfd ] && [ ! -e /dev/nvidiactl ]; then
			set -- --rocm "$@"
		else
			set -- --nv "$@"
		fi
	fi
	[ -z "$nodes" ] || set -- --bind "$scratch/.htcd/multi:$scratch/.htcd/multi:ro" "$@"
	puller=
	if [ -n "$credentials" ] && [ -n "$pull" ]; then
		[ -n "$login" ] || pull_once
		(cd .htcd/pulled && umask 077 && keep_pulling) </dev/null 7<&- >/dev/null 2>&1 &
		puller=$!
	fi
	refresher=
	if [ -n "$ticket" ]; then
		keep_ticket </dev/null 7<&- 8<&- >/dev/null 2>&1 &
		refresher=$!
	fi
	# HTCondor asks a job to end with SIGTERM, when it is removed, held or moved to
	# another node. What follows from that HTCondor knows better: no callback then.
	trap 'ended=1' TERM INT QUIT
	[ -z "$writable" ] || set -- --writable-tmpfs "$@"
	mounted=1 # what the script may have changed
	inside=1
	contained --quiet exec --contain --ipc --pid --bind "$scratch/.htcd/job:$scratch" --pwd "${workdir:-$scratch}" "$@" </dev/null 8<&- &
	child=$!
	exec 7<&- 9<&-

	trap 'ended=1; end_script >/dev/null 2>&1 &' TERM INT QUIT
	if [ -n "$ended" ]; then
		end_script >/dev/null 2>&1 &
	fi
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
	trap 'ended=1' TERM INT QUIT
	for helper in $puller $refresher; do
		kill "$helper" 2>/dev/null
		wait "$helper" 2>/dev/null
	done
}

# end_script asks the script to end. While apptainer sets its container up it loses signals, however long that takes, and HTCondor would
# kill the job only 10 minutes later. So apptainer is asked again until there is a script, which is then asked itself.
end_script() {
	while kill -0 "$child"; do
		if asked=$(the_script); then
			kill -TERM "$asked"
			return
		fi
		kill -TERM "$child"
		[ -r "/proc/$child/task/$child/children" ] || return
		sleep 1
	done
}

# the_script prints the process of the script: the child of the container's init, which is the tool's, or the tool's own where there is no
# init; and the first that has HTCPROCID, which none has before it is the script.
the_script() {
	inits=$(children "$child")
	for process in "$child" $inits $(for init in $inits; do children "$init"; done); do
		if tr '\0' '\n' <"/proc/$process/environ" | grep -q ^HTCPROCID=; then
			echo "$process"
			return 0 # in a trap, bash returns another status without
		fi
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
	[ -z "$traceparent" ] || export "${prefix}TRACEPARENT=$traceparent"
	[ -z "$environment" ] || export_lines <&9
	export_lines <&7
	exec 7<&- 9<&-
	[ -z "$node$workdir" ] || export "${prefix}outpath=$scratch"
	[ -z "$node" ] || export "${prefix}HTC_RESULTS=$scratch/.htcd-results"
	export "${prefix}HTC_RETRY=$retry"
	[ -z "$returned" ] || export "${prefix}RETURN=$returned"
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

# has_gpus reports whether HTCondor gave this job GPUs. In the environment, 10000 or none stands for none.
has_gpus() {
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

# drop_cores removes what the kernel has written of programs that crashed: ELF files of type ET_CORE, of the names that these have.
drop_cores() {
	for f in core core.[0-9]*; do
		if [ ! -f "$f" ] || [ -h "$f" ]; then
			continue
		fi
		case $(od -A n -t x1 -N 18 "$f" 2>/dev/null) in
		' 7f 45 4c 46 '*' 04 00' | ' 7f 45 4c 46 '*' 00 04')
			say "$f is a core file and is not brought back: name it in spec.outputs to have it"
			rm -f "$f"
			;;
		esac
	done
}

# shelter_names gives other names to files that HTCondor would not bring back: it joins names with commas, in one line,
# and takes the blanks off their ends; and a job whose list of files holds $$(X) it puts on hold when the schedd starts again. What
# they are called goes along in a list, and htcd gives the names back.
shelter_names() {
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
# the job: then this is no end.
deliverable() {
	for file in $outputs; do
		if [ ! -e "$file" ]; then
			say "there is no $file, which transfer_output_files names: HTCondor will hold this job"
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
		say "this job leaves $bytes bytes, and the site allows $max_output MiB: HTCondor will hold it"
		return 1
	fi
}

# landed adds to moves that the input $1 has come from the URL $2, if it is not called so.
landed() {
	url_end=${2%%\?*}
	url_end=${url_end##*/}
	[ -z "$2" ] || [ "$url_end" = "$1" ] || moves="$moves $1/$url_end"
}

# name_inputs gives inputs from URLs their names: HTCondor calls them as the URLs end. One may have another's name.
name_inputs() {
	! command -v own_moves >/dev/null || own_moves
	for move in $moves; do
		mv -f "./${move#*/}" ".htcd/new/${move%%/*}"
	done
	for move in $moves; do
		mv -f ".htcd/new/${move%%/*}" "./${move%%/*}"
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
	set --
	for file in $inputs; do
		[ ! -f "$file" ] || set -- "$@" "$file"
	done
	[ $# -eq 0 ] || stat -L -c '%s/%Y/%n' "$@" 2>/dev/null
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
			! -name '.*.ad' ! -name '.*.ad.tmp' ! -name .chirp.config -exec stat -L -c %s {} +
	fi
}

main "$@"
