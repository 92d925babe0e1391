
# call_back tells htcd the return code, within $deadline seconds. The token goes through a pipe or
# files only this account can read, never through arguments or the environment; no redirect is followed with it.
call_back() {
	started=$(seconds)
	tries=0
	umask 077
	printf '%s\n' "$secret" >.htcd/token || return 1
	printf 'header = Authorization: Bearer %s\n' "$secret" >.htcd/wget
	# shellcheck disable=SC2086 # paths without spaces, of authorities that are as good
	[ -z "$ca" ] || { printf '%s\n' "$ca" && { [ -z "$also" ] || cat $also "${SSL_CERT_FILE:-/dev/null}" 2>/dev/null; }; } >.htcd/ca
	more=
	if [ -n "$node" ]; then
		keep_stderr >.htcd/stderr 2>/dev/null
		more=$(of_node)
	fi
	event=$(printf '{"specversion":"1.0","id":"%s-%s-%s","source":"/htcd/job/%s","type":"ch.cern.htc.job.ended","datacontenttype":"application/json","data":{"name":"%s","namespace":"%s","jobid":"%s","retcode":%d%s}}' \
		"$jobid" "$started" "$$" "$jobid" "$name" "$namespace" "$jobid" "$rc" "$more")

	# The sender tries again by itself; only one that cannot run here is passed over.
	if [ -n "$sender" ]; then
		"$sender" send --name "$name" --namespace "$namespace" --jobid "$jobid" --retcode "$rc" \
			--url "$url" --token-file .htcd/token --deadline "${deadline}s" ${ca:+--ca-file .htcd/ca} \
			${node:+--node "$node" --exit "$end" --stderr-file .htcd/stderr --results-file "$out/.htcd-results"}
		case $? in
		0) return 0 ;;
		1) return 1 ;;
		esac
	fi

	pause=1
	left=$deadline
	while :; do
		tries=$((tries + 1))
		[ "$left" -gt 0 ] && [ "$tries" -le 30 ] || return 1
		[ "$left" -lt 10 ] || left=10
		answer=
		post && return 0
		case $answer in
		3?? | 400 | 401 | 403 | 405 | 413 | 415)
			echo "htcd: the receiver refused the callback with $answer" >&2
			return 1
			;;
		none)
			echo "htcd: this node has neither curl nor GNU wget, and no sender was sent along" >&2
			return 1
			;;
		esac
		# Jobs that end together should not come again together.
		sleep $((pause + $$ % 3))
		[ "$pause" -ge 8 ] || pause=$((pause * 2))
		left=$((started + deadline - $(seconds)))
	done
}

# seconds is the time, or 0 on a node that cannot tell it: then the tries are counted.
seconds() {
	date +%s 2>/dev/null || echo 0
}

# post tries once, for at most $left seconds, and sets answer to the HTTP status.
post() {
	if command -v curl >/dev/null 2>&1; then
		answer=$(printf 'header = "Authorization: Bearer %s"\n' "$secret" |
			curl -q --config - --silent --show-error --globoff --max-time "$left" ${ca:+--cacert .htcd/ca} \
				--header 'Content-Type: application/cloudevents+json' --data-binary "$event" \
				--output /dev/null --write-out '%{http_code}' "$url")
	elif wget --version 2>/dev/null | grep -q 'GNU Wget'; then
		answer=$(LC_ALL=C wget --config=.htcd/wget --quiet --server-response --tries=1 --timeout="$left" \
			--max-redirect=0 ${ca:+--ca-certificate=.htcd/ca} --header='Content-Type: application/cloudevents+json' --post-data="$event" \
			--output-document=/dev/null "$url" 2>&1 | sed -n 's|^ *HTTP/[0-9.]* \([0-9]*\).*|\1|p' | tail -n 1)
	else
		answer=none
	fi
	case $answer in
	2??) return 0 ;;
	esac
	return 1
}
