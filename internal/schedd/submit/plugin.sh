
# HTCondor runs this for the URLs of one scheme, in the job's directory, with -infile FILE -outfile FILE and perhaps -upload. It
# runs the node's own plugin for this scheme with the job's credentials.
main() {
	PATH=${PATH:-/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin}
	export PATH
	umask 077
	gives=
	direction=download
	while [ $# -gt 0 ]; do
		case $1 in
		-infile) asked=$2 && shift ;;
		-outfile) answer=$2 && shift ;;
		-upload) direction=upload ;;
		esac
		shift
	done
	[ "$direction" = upload ] || renew_credentials
	if [ -n "$proxy" ] && [ -f ".credential-$proxy" ]; then
		X509_USER_PROXY=$(pwd)/.credential-$proxy
		export X509_USER_PROXY
	fi
	find_plugin
	if [ -n "$many" ]; then
		transfer_all
	else
		transfer_each
	fi
}

# renew_credentials replaces the first copies, which may be as old as the submission; if htcd does not answer, they stay.
renew_credentials() {
	[ -n "$pull" ] || return 0
	pull_token=
	if [ -f .pull-token ]; then
		IFS= read -r pull_token <.pull-token || :
	else
		for file in token .own-*; do # one of them is there
			[ -f "$file" ] || continue
			{
				IFS= read -r _ || :
				IFS= read -r pull_token || :
			} <"$file"
		done
	fi
	sender=
	if [ -f htcd-send ]; then
		chmod 700 htcd-send
		sender=../htcd-send
	fi
	rm -rf .htcd-pulled
	mkdir .htcd-pulled || return 0
	(cd .htcd-pulled && pull_credentials 5) </dev/null >/dev/null 2>&1
	for credential in $credentials; do
		file=${credential%%:*}
		[ ! -f ".htcd-pulled/$file" ] || mv -f ".htcd-pulled/$file" ".credential-$file"
	done
	rm -rf .htcd-pulled
}

# find_plugin sets plugin to the node's own one for the scheme, and many if it takes a list. As with HTCondor, the last one counts.
find_plugin() {
	plugin=
	many=
	for candidate in $(condor_config_val FILETRANSFER_PLUGINS | tr ',' ' '); do
		says=$("$candidate" -classad) || continue
		methods=$(printf '%s\n' "$says" | sed -n 's/^ *SupportedMethods *= *"\(.*\)".*/\1/p' | tr -d ' ')
		case ",$methods," in
		*",$scheme,"*)
			plugin=$candidate
			many=$(printf '%s\n' "$says" | grep -i '^ *MultipleFileSupport *= *true')
			;;
		esac
	done 2>/dev/null
}

# transfer_all passes HTCondor's list on. Such plugins look for the token that a URL names in a directory of HTCondor's.
transfer_all() {
	if [ -n "$bearer" ] && [ -f ".credential-$bearer" ]; then
		rm -rf .htcd-creds
		mkdir .htcd-creds
		cp ".credential-$bearer" ".htcd-creds/$bearer.use"
		_CONDOR_CREDS=$(pwd)/.htcd-creds
		export _CONDOR_CREDS
	fi
	if [ "$direction" = upload ]; then
		"$plugin" -infile "$asked" -outfile "$answer" -upload
	else
		"$plugin" -infile "$asked" -outfile "$answer"
	fi
	code=$?
	rm -rf .htcd-creds
	exit "$code"
}

# transfer_each handles the list, "[ Url = "..."; LocalFileName = "..." ][ ... ]", with a plugin for one file at a time.
transfer_each() {
	: >"$answer"
	{
		tr '\n' ' ' <"$asked" | sed 's/\] *\[ /\n/g'
		echo
	} >.htcd-urls || exit 1
	while IFS= read -r line; do
		url=${line#*Url = \"}
		url=${url%%\"*}
		file=${line#*LocalFileName = \"}
		file=${file%%\"*}
		transfer_one && error= || error=$(printf %s "${said:-the plugin failed}" | tr '"\\\n' "'/ " | cut -c 1-1000)
		printf '[ TransferSuccess = %s; TransferUrl = "%s"; TransferFileName = "%s"; TransferProtocol = "%s"; TransferType = "%s"%s ]\n' \
			"$([ -n "$error" ] && echo false || echo true)" "$url" "${file##*/}" "$scheme" "$direction" \
			"${error:+; TransferError = \"$error\"}" >>"$answer"
		[ -z "$error" ] || break
	done <.htcd-urls
	rm -f .htcd-urls
	[ -z "$error" ] || exit 1
}

# transfer_one transfers $file from or to $url, and sets said to what the plugin says.
transfer_one() {
	if [ -z "$plugin" ]; then
		said="htcd: this node has no transfer plugin for $scheme, or no condor_config_val in $PATH"
		return 1
	fi
	plain=$url
	unset BEARER_TOKEN_FILE
	case $url in
	*+"$scheme"://*)
		plain=${url#*+}
		BEARER_TOKEN_FILE=$(pwd)/.credential-$bearer
		export BEARER_TOKEN_FILE
		;;
	esac
	if [ "$direction" = upload ]; then
		said=$("$plugin" "$file" "$plain" 2>&1 </dev/null)
	else
		said=$("$plugin" "$plain" "$file" 2>&1 </dev/null)
	fi
	code=$?
	named=$(printf '%s\n' "$said" | sed -n 's/^ *TransferError *= *"\(.*\)"$/\1/p' | tail -n 1)
	said=${named:-$said}
	return "$code"
}

main "$@"
