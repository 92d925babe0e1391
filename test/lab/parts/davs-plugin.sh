#!/bin/sh
# A file transfer plugin of HTCondor for davs://, as sites have them: https to a server that wants to see the job's proxy.
if [ "$1" = -classad ]; then
	printf '%s\n' 'PluginType = "FileTransfer"' 'SupportedMethods = "davs"' 'MultipleFileSupport = false'
	exit
fi
case $1 in
davs://*) set -- --output "$2" "https${1#davs}" ;;
*) set -- --upload-file "$1" "https${2#davs}" ;;
esac
said=$(curl --silent --show-error --fail --capath "$X509_CERT_DIR" ${X509_USER_PROXY:+--cert "$X509_USER_PROXY"} "$@" 2>&1) && exit
printf 'TransferError = "%s"\n' "$(printf %s "$said" | tr '"\\\n' "'/ ")"
exit 1
