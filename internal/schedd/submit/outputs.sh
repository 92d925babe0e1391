
# For a job with outputs.

# gather moves what the lines of $declared name into .htcd-out, which is all that HTCondor brings back, and there into a directory
# named by the number of earlier executions: what these have left is at the schedd, too. If the script
# succeeded and there is nothing for one of the lines, it sets missing to the signal that says which, and rc to the code
# that a shell would return for it.
gather() {
	out=.htcd-out/$starts
	lines=$declared
	[ -z "$node" ] || lines="$declared
$handed"
	set -f
	IFS='
'
	# shellcheck disable=SC2086 # a line each
	set -- $lines
	IFS= # from here on no name is split
	set +f

	succeeded=
	case " $successes " in
	*" $rc "*) [ -n "$ended" ] || succeeded=1 ;;
	esac
	first=
	number=0
	for path; do
		found=
		for f in ./$path; do
			if output "${f#./}" "$path" && { ! among "$number" "$sent" || [ -f "$f" ]; }; then
				found=1
				if [ -d "$f" ]; then
					chmod -R u+rwX "$f" 2>/dev/null || :
					find "$f" -type l -exec rm -f {} + # to directories: HTCondor holds a job with one
				elif [ ! -r "$f" ]; then
					chmod u+rw "$f" 2>/dev/null || :
				fi
			fi
		done
		if [ -z "$found" ]; then
			first=${first:-$number}
			absent="${absent:+$absent, }$path"
		fi
		number=$((number + 1))
	done
	if [ -n "$node" ]; then
		if [ -n "$always" ] || { [ -n "$succeeded" ] && [ -z "$first" ]; }; then
			hand_on
		fi
		set -f
		IFS='
'
		# shellcheck disable=SC2086
		set -- $declared
		IFS=
		set +f
	fi
	# First what HTCondor writes to URLs ($sent), also if it is brought back, too ($both), so that no pattern takes it along.
	[ "$sent" = ' ' ] || mkdir -p .htcd-out/.url
	number=0
	for path; do
		if ! among "$number" "$sent"; then
			:
		elif [ -z "$succeeded" ] || [ -n "$first" ]; then
			among "$number" "${both:-}" || rm -f "./$path"
		elif among "$number" "${both:-}"; then
			ln -f "./$path" ".htcd-out/.url/$number" 2>/dev/null || cp -p "./$path" ".htcd-out/.url/$number" || first=${first:-$number}
		elif [ -f "./$path" ]; then
			mv -f "./$path" ".htcd-out/.url/$number" || first=${first:-$number}
		fi
		number=$((number + 1))
	done
	number=0
	for path; do
		{ among "$number" "$sent" && ! among "$number" "${both:-}"; } || collect "$path" || first=${first:-$number}
		number=$((number + 1))
	done
	[ -z "$node" ] || [ -z "$rest" ] || gather_rest
	[ -z "$node" ] || keep_results
	unset IFS
	if [ -n "$succeeded" ] && [ -z "$first" ] && [ "$sent" != ' ' ]; then
		note_sent
	fi

	if [ -n "$first" ] && [ -n "$succeeded" ]; then
		say "missing in the script's directory, and named in spec.outputs: ${absent:-see above}"
		missing=$((lacking + first))
		rc=$((128 + missing))
	fi
}

# among reports whether the number $1 is one of the list $2.
among() {
	case $2 in
	*" $1 "*) return 0 ;;
	esac
	return 1
}

# note_sent lists the sizes of the files that HTCondor writes to URLs, and their checksums as far as a minute suffices for. The list
# comes back with the output.
note_sent() {
	(
		cd .htcd-out/.url || exit
		stat -L -c '%n %s' [0-9]*
		timeout 60 sha256sum [0-9]*
	) >"$out.sent" 2>/dev/null || :
}

# output reports whether a name that the path $2 matches is output. An input, htcd's own or HTCondor's is only output by its own
# name, if at all.
output() {
	[ -f "$1" ] || { [ -d "$1" ] && [ ! -h "$1" ]; } || return 1
	top=${1%%/*}
	case $top in
	script | token | htcd-send | job.sh | job.sub | condor_exec.exe | tmp | var | _condor* | .*) return 1 ;;
	esac
	[ "$top" != "${2%%/*}" ] || return 0
	[ -z "$node" ] || ! came_along "$top" || return 1
	case " ${inputs:-} " in
	*" $top "*) return 1 ;;
	esac
}

# collect moves the output that the path $1 matches into $out: directories one by one, up to 200 files of one directory at once.
collect() {
	pattern=$1
	parent=
	lost=0
	set --
	for f in ./$pattern; do
		output "${f#./}" "$pattern" || continue
		if [ -d "$f" ]; then
			take_along "${f#./}" || lost=1
			continue
		fi
		if [ "${f%/*}" != "$parent" ] || [ $# -ge 200 ]; then
			move "$parent" "$@" || lost=1
			parent=${f%/*}
			set --
		fi
		set -- "$@" "$f"
	done
	move "$parent" "$@" || lost=1
	return $lost
}

# move moves files of the directory $1 into $out.
move() {
	[ $# -gt 1 ] || return 0
	to=$out/${1#.}
	shift
	{ [ -d "$to" ] || mkdir -p "$to"; } && mv -f "$@" "$to/"
}

# take_along moves a directory into $out, under its own path.
take_along() {
	case $1 in
	*/*) mkdir -p "$out/${1%/*}" ;;
	esac
	if [ -d "$out/$1" ]; then # some of it is there already
		(cd "./$1" && find . ! -type d -exec sh -c \
			'for f; do mkdir -p "$0/${f%/*}" && mv -f "$f" "$0/$f" || exit 1; done' "$scratch/$out/$1" {} +)
	else
		mv -f "./$1" "$out/$1"
	fi
}
