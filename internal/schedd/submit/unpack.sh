
# For a job with archives among its inputs.

# unpack puts what each of $archives has into the script's directory, or, where a slash follows the name, into a directory of the
# archive's name there. It runs outside of the container, and so takes directories and regular files alone; tar refuses names with "..".
# What else came along is put there later, and replaces what is called the same.
unpack() {
	top=
	for archive in $archives; do
		into=.htcd/job
		case $archive in
		*/) into=.htcd/job/$archive ;;
		*) top=1 ;;
		esac
		archive=${archive%/}
		[ -e "$archive" ] || continue # it is optional
		if tar -tvf "$archive" 2>/dev/null | grep -q '^[^d-]'; then
			say "the archive of the input $archive has a link, or something else that is no file or directory: it is not unpacked"
			exit 125
		fi
		if ! { mkdir -p "$into" && tar -xof "$archive" -C "$into" && chmod -R u+rwX "$into"; }; then
			say "the archive of the input $archive could not be unpacked"
			exit 125
		fi
		rm -f "$archive"
	done
	[ -z "$top" ] || note_unpacked
}

# note_unpacked gives the files at the top further names, by which drop_unpacked knows them again.
note_unpacked() {
	mkdir .htcd/unpacked && find .htcd/job -mindepth 1 -maxdepth 1 -type f -exec ln {} .htcd/unpacked/ \; || exit 125
	: >.htcd/unpacked.time
	find .htcd/unpacked -type f -newer .htcd/unpacked.time -exec touch -r .htcd/unpacked.time {} + # another machine's clock may be ahead
}

# drop_unpacked removes files at the top that the script has left as they were: HTCondor would take them for output.
drop_unpacked() {
	[ -d .htcd/unpacked ] || return 0
	[ -z "$saving$declared" ] || return 0
	[ -z "$named" ] || [ -n "$node" ] || return 0
	cd .htcd/unpacked || exit 125
	for f in ./* ./.[!.]* ./..?*; do
		[ -f "$f" ] || continue
		# shellcheck disable=SC3013 # all shells have it
		[ "$f" -nt ../unpacked.time ] || ! same_file "$f" "../job/$f" || rm -f "../job/$f"
	done
	cd "$scratch" || exit 125
}
