
# For a node of a DAG.

# read_place reads the first line of the file that this node alone has: where its files lie for later nodes that pull from several,
# and its number within its step and sequence. The variables follow.
read_place() {
	IFS=' ' read -r place proc <&7 || :
}

# enter notes what came along, and makes the directories that a later node expects.
enter() {
	came_names=/
	for f in ./*; do
		came_names="$came_names${f#./}/"
	done
	[ -n "$handed" ] || return 0
	number=0
	printf '%s\n' "$handed" | while IFS= read -r _; do # HTCondor holds a job without them
		mkdir -p ".htcd-pull/$number"
		number=$((number + 1))
	done
}

# came_along reports whether a file or a directory of that name came along.
came_along() {
	case $came_names in
	*"/$1/"*) return 0 ;;
	esac
	return 1
}

# hand_on puts what the lines of $handed name into .htcd-pull, in one directory for each: it stays where the next
# nodes begin.
hand_on() {
	set -f
	IFS='
'
	# shellcheck disable=SC2086 # a line each
	set -- $handed
	IFS=
	set +f
	number=0
	for path; do
		to=$scratch/.htcd-pull/$number
		case $several in
		*" $number "*) to=$to/$place ;;
		esac
		for f in ./$path; do
			output "${f#./}" "$path" || continue
			find "$f" -type f -exec sh -c 'for f; do
				mkdir -p "$0/${f%/*}" && { ln -f "$f" "$0/$f" 2>/dev/null || cp -p "$f" "$0/$f"; }
			done' "$to" {} +
		done
		number=$((number + 1))
	done
}

# gather_rest moves all files that the script has left at the top into $out, for a step that names no outputs.
gather_rest() {
	set --
	for f in ./*; do
		{ [ -f "$f" ] && output "${f#./}" '*'; } || continue
		[ -r "$f" ] || chmod u+rw "$f" 2>/dev/null || :
		set -- "$@" "$f"
		if [ $# -ge 200 ]; then
			move . "$@" || first=${first:-0}
			set --
		fi
	done
	move . "$@" || first=${first:-0}
}

# settle sets end, with which the wrapper ends: DAGMan takes 0 alone for a success.
settle() {
	[ -z "$ended" ] || return 0
	case " $successes " in
	*" $rc "*) end=0 ;;
	*) [ "$rc" -ne 0 ] || end=1 ;;
	esac
	[ -z "$always" ] || {
		end=0
		missing=
	}
}

# of_node adds to data what the callback of a node has beside that of an HTCJob's job.
of_node() {
	data="$data,\"node\":$node,\"exit\":$end"
	in_json results "$out/.htcd-results"
}

# keep_results keeps what the script has measured: for the callback, and among what HTCondor brings back. One byte more than is used
# shows that there was more. How long the script ran comes first: what it says itself replaces that.
keep_results() {
	[ -z "$timed" ] || [ -z "$began" ] || echo "duration=$(($(date +%s) - began))" >"$out/.htcd-results"
	[ ! -f .htcd-results ] || head -c 4097 .htcd-results >>"$out/.htcd-results" 2>/dev/null || :
}
