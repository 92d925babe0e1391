
# For a job that keeps checkpoints: its script ends with the return code $checkpoint whenever it has written one. HTCondor brings .htcd-ckpt to the
# spool then, and starts this wrapper again, in the same directory and at once; after an eviction in a new one, with .htcd-ckpt.

# resume reports whether the execution before this one was in this directory, and finds what that has left for it.
resume() {
	[ -d .htcd/again ] || return 1
	(cd .htcd/again && move_to "$scratch") && rmdir .htcd/again && mkdir -m 700 .htcd/new .htcd/held || exit 125
	rm -rf .htcd-ckpt
}

# remember keeps what is gone from the disk before the script starts, for an execution in the same directory.
remember() {
	kept_token=$(cat token 2>/dev/null)
	kept_own=$(cat ".own-$proc" 2>/dev/null)
	kept_pull=$(cat .pull-token 2>/dev/null)
	kept_variables=$(cat .environment 2>/dev/null)
	[ ! -f htcd-send ] || ln -f htcd-send .htcd/htcd-send
}

# recall finds what the first execution in this directory has noted of what came along.
recall() {
	came=$(cat .htcd/came)
	came_names=$(cat .htcd/came_names)
}

# place_checkpoint puts the checkpoint that came along into the script's directory, over what else came.
place_checkpoint() {
	[ -d .htcd-ckpt ] || return 0
	cp -alfT .htcd-ckpt .htcd/job 2>/dev/null || cp -afT .htcd-ckpt .htcd/job
	rm -rf .htcd-ckpt
}

# save puts the checkpoint into .htcd-ckpt, as further names of its files, and leaves what the next execution needs. If something of
# the checkpoint is missing, it is an end like any other, with the signal $unsaved.
save() {
	saving=1
	bring_back
	saving=
	rm -rf .htcd-ckpt
	mkdir -m 700 .htcd-ckpt
	set -f
	IFS='
'
	# shellcheck disable=SC2086 # a line each
	set -- $saved
	unset IFS
	set +f
	for path; do
		case $path in
		*/*) mkdir -p ".htcd-ckpt/${path%/*}" ;;
		esac
		cp -alfT "./$path" ".htcd-ckpt/$path" || cp -afT "./$path" ".htcd-ckpt/$path"
	done 2>/dev/null
	[ -z "$linked" ] || find .htcd-ckpt -type l -exec rm -f {} + # to directories: HTCondor would fail
	absent=
	for path; do
		[ -e ".htcd-ckpt/$path" ] || absent="${absent:+$absent, }$path"
	done
	if [ -n "$absent" ]; then
		say "the script has ended with $rc, which says that it has written a checkpoint, but has left no $absent, which spec.checkpoint.files names"
		rm -rf .htcd-ckpt
		missing=$unsaved
		url=
		return 1
	fi
	umask 077
	[ -z "$credentials" ] || leave_credentials
	rm -rf .htcd/new .htcd/held .htcd/pulled .htcd/credentials
	mkdir .htcd/again || exit 125
	printf '%s' "$came" >.htcd/came
	printf '%s' "${came_names:-}" >.htcd/came_names
	leave token "$kept_token"
	leave ".own-$proc" "$kept_own"
	leave .pull-token "$kept_pull"
	leave .environment "$kept_variables"
	[ ! -f .htcd/htcd-send ] || mv -f .htcd/htcd-send .htcd/again/htcd-send
}

# leave leaves a file for the next execution.
leave() {
	[ -z "$2" ] || printf '%s\n' "$2" >".htcd/again/$1"
}

# place_left puts the output that an evicted execution has left into the script's directory, over what else came. Without
# spec.outputs it is there: HTCondor sends it as it does inputs.
place_left() {
	last=-1
	for left in .htcd/left/*; do
		left=${left##*/}
		case $left in
		*[!0-9]*) ;;
		*) [ "$left" -le "$last" ] || last=$left ;;
		esac
	done
	[ "$last" -lt 0 ] || cp -alfT ".htcd/left/$last" .htcd/job 2>/dev/null || cp -afT ".htcd/left/$last" .htcd/job
	rm -rf .htcd/left
}
