
# What follows is there for jobs with credentials only.
# place_credentials moves the credentials that came along into .htcd/pulled, where the script cannot change them, and gives it copies.
place_credentials() {
	mkdir -m 700 .htcd/pulled .htcd/credentials || exit 125
	gives=1
	for credential in $credentials; do
		file=${credential%%:*}
		if [ -f ".credential-$file" ]; then
			chmod 600 ".credential-$file"
			mv -f ".credential-$file" ".htcd/pulled/$file"
			(cd .htcd/pulled && give "$file")
		fi
	done
}

# give gives the script the credential $1 as it is now, in a new file: what the script has under this name is not written to.
give() {
	[ "$1" != "$login" ] || return 0
	cp -p "$1" .given && mv -f -T .given "../credentials/$1"
}

# pull_once replaces credentials that have changed since they were sent.
pull_once() {
	(cd .htcd/pulled && umask 077 && pull_credentials 5) </dev/null >/dev/null 2>&1
}

# fetch_image fetches the image with the login for its registry, which is gone before the script starts.
fetch_image() {
	[ -z "$pull" ] || pull_once
	rc=255
	if [ -f .htcd/image.sif ]; then
		rc=127 # before a checkpoint
	elif ! "$tool" pull --help 2>/dev/null | grep -q -e --authfile; then
		say "$tool on this node takes no login from a file (--authfile): the script was not run"
	elif said=$("$tool" --quiet pull --authfile ".htcd/pulled/$login" .htcd/image.sif "$image" 2>&1 </dev/null 7<&- 8<&-); then
		rc=127
	else
		printf '%s\n' "$said" >&2
		say "$image could not be fetched with the credential $login: the script was not run"
	fi
	rm -f ".htcd/pulled/$login"
	left=
	for credential in $credentials; do
		[ "${credential%%:*}" = "$login" ] || left="$left $credential"
	done
	credentials=${left# }
	image=$scratch/.htcd/image.sif
	[ "$rc" = 127 ]
}

# leave_credentials puts them back, as they were pulled last, for the plugins that write the outputs with URLs.
leave_credentials() {
	for credential in $credentials; do
		file=${credential%%:*}
		mv -f ".htcd/pulled/$file" ".credential-$file"
	done 2>/dev/null
}

# keep_pulling replaces credentials that have changed, until it is ended, or the wrapper is no more.
keep_pulling() {
	pause=30
	trap 'kill "$nap" 2>/dev/null; exit' TERM
	while kill -0 $$; do
		if [ -f .pause ]; then
			read -r pause <.pause
			case $pause in '' | *[!0-9]* | ??????*) pause=30 ;; esac
		fi
		sleep $((pause / 2 + pause * ($$ % 100) / 200)) & # not all jobs at once
		nap=$!
		wait "$nap"
		pull_credentials 20 &
		nap=$!
		wait "$nap"
	done
}

# pull_credentials asks once, for at most $1 seconds. The answer is a line with its format, the seconds until the next question
# and its digest; a line "NAME BASE64" for each credential, unless the digest is that of the answer before; and a line "end".
# Without all of it nothing is replaced.
pull_credentials() {
	have=
	[ ! -f .digest ] || read -r have <.digest
	get_credentials "$1" "$pull?have=$have" >.answer || return
	[ "$(tail -n 1 .answer)" = end ] || return
	read -r format next digest <.answer
	[ "$format" = htcd1 ] || return
	while read -r file text; do
		case " $credentials" in
		*" $file:"*) ;;
		*) continue ;;
		esac
		printf '%s\n' "$text" | base64 -d >.part && mv -f .part "$file" || return
		[ -z "$gives" ] || give "$file" || return
	done <.answer
	rm -f .answer
	printf '%s\n' "$digest" >.digest
	printf '%s\n' "$next" >.pause
}

# get_credentials prints the answer to one question. As with callbacks, the token goes through a pipe or a file that only this
# account can read, and no redirect is followed with it.
get_credentials() {
	# shellcheck disable=SC2086 # as in wrapper.sh
	[ -z "$ca" ] || { printf '%s\n' "$ca" && { [ -z "$also" ] || cat $also "${SSL_CERT_FILE:-/dev/null}" 2>/dev/null; }; } >.ca
	if [ -n "$sender" ]; then
		printf '%s\n' "$pull_token" | "$sender" pull --url "$2" --timeout "${1}s" ${ca:+--ca-file .ca}
		case $? in
		0) return 0 ;;
		1) return 1 ;;
		esac
	fi
	if command -v curl >/dev/null 2>&1; then
		printf 'header = "Authorization: Bearer %s"\n' "$pull_token" |
			curl -q --config - --silent --fail --globoff --proto =https --max-time "$1" ${ca:+--cacert .ca} "$2"
	elif wget --version 2>/dev/null | grep -q 'GNU Wget'; then
		printf 'header = Authorization: Bearer %s\n' "$pull_token" >.wget
		LC_ALL=C wget --config=.wget --quiet --tries=1 --timeout="$1" --https-only --max-redirect=0 \
			${ca:+--ca-certificate=.ca} --output-document=- "$2"
		set -- "$?"
		rm -f .wget
		return "$1"
	else
		return 1
	fi
}
