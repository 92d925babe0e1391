
# For a job with something that runs before or after its script. Each part has a container of its own, of the same image, with the
# script's directory as the part before has left it.

# take_parts keeps the sources, and the variables, where the script does not see them.
take_parts() {
	for file in before after; do
		[ ! -f ".htcd-$file" ] || mv -f ".htcd-$file" ".htcd/$file"
	done
	cat <&7 >.htcd/own || no_room
	[ -z "$environment" ] || cat <&9 >.htcd/variables || no_room
}

# arguments runs the parts, and sets rc to the return code of the job. Who has the container instead runs what they want themselves.
arguments() {
	if [ -n "$interactive" ]; then
		equipped run_script "$@"
		return
	fi
	if [ -f .htcd/before ] && [ -z "$again" ]; then
		part=script.before
		stays=0
		show before
		equipped run_before
		[ -z "$ended" ] || [ "$rc" -ne 0 ] || rc=143 # the script has not run
		if [ "$rc" -ne 0 ]; then
			if [ -n "$ended" ]; then
				interrupted
			elif [ -n "$inside" ]; then
				say "script.before has ended with the return code $rc: the script was not run"
			fi
			fail
			return
		fi
		part='the script'
		stays="$successes $checkpoint"
	fi
	[ ! -f .htcd/after ] || stays=
	equipped run_script "$@"
	[ -f .htcd/after ] && [ -n "$inside" ] && [ -z "$ended$imageless" ] && [ "$rc" != "$checkpoint" ] || return 0
	end_rest
	part=script.after
	stays=$successes
	returned=$rc
	show after
	equipped run_after
	if [ -n "$ended" ]; then
		interrupted
	elif [ "$returned $rc" != '0 0' ]; then
		say "the script has ended with the return code $returned, and script.after, which decides, with $rc"
	fi
	[ "$rc" != "$checkpoint" ] || fail
}

# interrupted says what ran when HTCondor asked the job to end.
interrupted() {
	say "the job was asked to end while $part ran"
}

# equipped runs a part with the variables.
equipped() {
	exec 7<.htcd/own
	[ -z "$environment" ] || exec 9<.htcd/variables
	"$@"
}

# show puts a part into the script's directory, as a new file, whatever the script has there.
show() {
	open_up .htcd/job
	if [ -e ".htcd/job/.htcd-$1" ] || [ -h ".htcd/job/.htcd-$1" ]; then
		mv -f -T ".htcd/job/.htcd-$1" ".htcd/held/$1"
	fi
	cp -p ".htcd/$1" ".htcd/new/$1" && mv -f -T ".htcd/new/$1" ".htcd/job/.htcd-$1"
}

# fail makes of rc a code that is that of a failure and nothing else.
fail() {
	for code in "$rc" 1 125 126 127; do
		case " $successes $checkpoint " in
		*" $code "*) ;;
		*)
			rc=$code
			return
			;;
		esac
	done
}
