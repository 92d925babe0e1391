#!/bin/sh
# DAGMan runs it beside nodes: daggate.go says why. What is in the directory bad has failed, or could not run.

main() {
	what=$1 node=${2-}
	[ $# -lt 2 ] || shift 2
	case $what in
	note) # after a node, with its return code
		[ "$1" = 0 ] || : >"bad/$node" || exit 1
		;;
	skip | fail) # before one, with those that must have succeeded
		for parent; do
			[ -e "bad/$parent" ] || continue
			[ "$what" = skip ] || exit 1
			: >"bad/$node" || exit 1
			exit 3 # PRE_SKIP
		done
		;;
	end)
		for bad in bad/*; do
			[ ! -e "$bad" ] || exit 1
		done
		;;
	esac
	exit 0
}

main "$@"
