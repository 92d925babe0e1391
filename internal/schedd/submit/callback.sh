
# call_back tells htcd the return code, within $deadline seconds; or, of a job that HTCondor is about to hold, only what it wrote.
call_back() {
	seconds
	started=$now
	tries=0
	at=.htcd/
	equip || return 1
	keep_stderr >.htcd/stderr 2>/dev/null
	if [ -n "$held" ]; then
		type=held
		data="\"held\":true${node:+,\"node\":$node}"
	else
		type=ended
		data="\"retcode\":$rc"
		[ -z "$node" ] || of_node
	fi
	in_json stderr .htcd/stderr
	event "$type" "$started-$$"

	# The sender tries again by itself; only one that cannot run here is passed over.
	if [ -n "$sender" ]; then
		"$sender" send --name "$name" --namespace "$namespace" --jobid "$jobid" --retcode "$rc" \
			--url "$url" --token-file .htcd/token --deadline "${deadline}s" ${ca:+--ca-file .htcd/ca} --stderr-file .htcd/stderr \
			${held:+--held} ${node:+--node "$node" --exit "$end" --results-file "$out/.htcd-results"}
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
			say "the receiver refused the callback with $answer"
			return 1
			;;
		none)
			say "this node has neither curl nor GNU wget, and no sender was sent along"
			return 1
			;;
		esac
		# Jobs that end together should not come again together.
		sleep $((pause + $$ % 3))
		[ "$pause" -ge 8 ] || pause=$((pause * 2))
		seconds
		left=$((started + deadline - now))
	done
}

# keep_stderr prints the end of the standard error, unless the job has succeeded and stays so.
keep_stderr() {
	[ -n "$held$on_exit_hold" ] || case " $successes " in
	*" $rc "*) return 0 ;;
	esac
	[ ! -f _condor_stderr ] || tail -c 4096 _condor_stderr
}

# in_json adds the file $2 to data, as the text $1, unless there is nothing in it.
in_json() {
	[ ! -s "$2" ] || data="$data,\"$1\":\"$(LC_ALL=C tr '\000-\010\013-\037\177' '?' <"$2" |
		LC_ALL=C sed -e ':a' -e '$!{' -e 'N' -e 'ba' -e '}' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/	/\\t/g' -e 's/\n/\\n/g')\""
}

# tell_start tells htcd once that the job runs, if it does so for a second. Nobody waits for that, or depends on it.
tell_start() {
	at=.htcd/start-
	equip || return
	left=10
	if [ -z "$sender" ]; then
		data="\"started\":true${node:+,\"node\":$node}"
		event started "$starts-start"
		post
	else
		"$sender" send --name "$name" --namespace "$namespace" --jobid "$jobid" --started --retcode 0 \
			--url "$url" --token-file "${at}token" --deadline 10s ${ca:+--ca-file "${at}ca"} ${node:+--node "$node"}
	fi
	if [ -f "${at}token" ] || [ -f "${at}wget" ]; then
		rm -f "${at}token" "${at}wget"
	fi
}

# equip writes what a post needs into files whose names begin with $at. The token goes through a pipe or files only this account can read, never through arguments or
# the environment; no redirect is followed with it.
equip() {
	umask 077
	if [ -n "$sender" ]; then
		printf '%s\n' "$secret" >"${at}token" || return 1
	fi
	command -v curl >/dev/null 2>&1 || printf 'header = Authorization: Bearer %s\n' "$secret" >"${at}wget"
	# shellcheck disable=SC2086 # paths without spaces, of authorities that are as good
	[ -z "$ca" ] || { printf '%s\n' "$ca" && { [ -z "$also" ] || cat $also "${SSL_CERT_FILE:-/dev/null}" 2>/dev/null; }; } >"${at}ca"
	return 0 # not all of the node's files are there
}

# event sets event to one of the type $1, with an id that ends in $2 and data beside the job's names.
event() {
	event="{\"specversion\":\"1.0\",\"id\":\"$jobid-$2\",\"source\":\"/htcd/job/$jobid\",\"type\":\"ch.cern.htc.job.$1\",\"datacontenttype\":\"application/json\","
	event="$event\"data\":{\"name\":\"$name\",\"namespace\":\"$namespace\",\"jobid\":\"$jobid\",$data}}"
}

# seconds sets now to those that the node has run, or to 0 on one that cannot tell it: then the tries are counted.
seconds() {
	now=0
	IFS=. read -r now _ 2>/dev/null </proc/uptime || :
}

# post tries once, for at most $left seconds, and sets answer to the HTTP status.
post() {
	if command -v curl >/dev/null 2>&1; then
		answer=$(curl -q --config - --silent --show-error --globoff --max-time "$left" ${ca:+--cacert "${at}ca"} \
			--header 'Content-Type: application/cloudevents+json' --data-binary "$event" \
			--output /dev/null --write-out '%{http_code}' "$url" <<-end
				header = "Authorization: Bearer $secret"
			end
		)
	elif wget --version 2>/dev/null | grep -q 'GNU Wget'; then
		answer=$(LC_ALL=C wget --config="${at}wget" --quiet --server-response --tries=1 --timeout="$left" \
			--max-redirect=0 ${ca:+--ca-certificate="${at}ca"} --header='Content-Type: application/cloudevents+json' --post-data="$event" \
			--output-document=/dev/null "$url" 2>&1 | sed -n 's|^ *HTTP/[0-9.]* \([0-9]*\).*|\1|p' | tail -n 1)
	else
		answer=none
	fi
	case $answer in
	2??) return 0 ;;
	esac
	return 1
}
