#!/bin/sh
# DAGMan runs it beside nodes: daggate.go says why. A file in the directory bad is a node that has failed, or, if it is not empty, could not run.

main() {
	what=$1 node=${2-}
	[ $# -lt 2 ] || shift 2
	case $what in
	note) # after a node, with its return code
		[ "$1" = 0 ] || : >"bad/$node" || exit 1
		;;
	skip | fail) # before one, with those that must have succeeded; N: is how many of the next ones may have failed
		for parent; do
			case $parent in
			*:) left=${parent%:} ;;
			*)
				[ ! -s "bad/$parent" ] || left=0
				[ ! -e "bad/$parent" ] || left=$((left - 1))
				[ "$left" -lt 0 ] || continue
				[ "$what" = skip ] || exit 1
				echo skipped >"bad/$node" || exit 1
				exit 3 # PRE_SKIP
				;;
			esac
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
