#!/bin/sh
# Builds the lab's own program as $1, and says how far it is, as the compiler does each package.
set -eu
cd "$(dirname "$0")/../test"
# With the flags of everything else that the lab builds (test/lab/cache), so that the standard library is compiled once.
{ CGO_ENABLED=0 GOGC=400 go build -v -trimpath -gcflags all=-dwarf=false -o "$1" ./cmd/lab || echo failed; } 2>&1 | {
	n=0
	all=
	while IFS= read -r line; do
		case $line in
		failed) exit 1 ;;
		*[!a-zA-Z0-9./_~-]*) # no package: a download, or an error
			echo "$line"
			continue
			;;
		esac
		n=$((n + 1))
		[ $((n % 20)) = 0 ] || continue
		: "${all:=$(go list -deps ./cmd/lab | wc -l)}"
		echo "the lab's own program: package $n of $all"
	done
}
