
# keeper runs the script, or another part, inside the container, and stays there for a while if it fails. It passes on the signal by which HTCondor
# asks a job to end. wrapper.sh uses it.
# shellcheck disable=SC2016 # it is for another shell
keeper='
keep=$1 successes=$2 part=$3
shift 3
ended=
trap "ended=1; kill -TERM \$child 2>/dev/null" TERM
await() {
	wait "$child"
	rc=$?
	while kill -0 "$child" 2>/dev/null; do
		wait "$child"
		rc=$?
	done
}
"$@" &
child=$!
await
case " $successes " in
*" $rc "*) exit "$rc" ;;
esac
[ -z "$ended" ] || exit "$rc"
code=$rc
echo "htcd: $part has ended with the return code $code; its container stays for $keep s (spec.keepOnFailure)" >&2
sleep "$keep" </dev/null >/dev/null 2>&1 &
child=$!
await
exit "$code"'
