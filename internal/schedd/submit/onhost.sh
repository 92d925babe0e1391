
# find_schedd names the schedd that has started this to the tools that it uses: a host may have several.
find_schedd() {
	PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin
	export PATH
	subsystem="-subsystem SCHEDD"
	named=$(tr '\0' '\n' <"/proc/$PPID/cmdline" | sed -n '/^-local-name$/{n;p;}')
	if [ -n "$named" ]; then
		subsystem="-subsystem SCHEDD -local-name $named"
		# shellcheck disable=SC2086 # words of options
		_CONDOR_SCHEDD_ADDRESS_FILE=$(condor_config_val $subsystem SCHEDD_ADDRESS_FILE)
		# shellcheck disable=SC2086
		_CONDOR_SCHEDD_DAEMON_AD_FILE=$(condor_config_val $subsystem SCHEDD_DAEMON_AD_FILE)
		export _CONDOR_SCHEDD_ADDRESS_FILE _CONDOR_SCHEDD_DAEMON_AD_FILE
	fi
	export _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS=FS
}

# setting prints what the schedd's configuration has.
setting() {
	# shellcheck disable=SC2086 # words of options
	condor_config_val $subsystem "$1" 2>/dev/null
}

# may_send reports whether the schedd takes jobs that this account sends from here.
may_send() {
	for pause in 1 5; do
		condor_ping -quiet -type SCHEDD WRITE && return 0
		sleep "$pause"
	done
	condor_ping -verbose -type SCHEDD WRITE >&2
}
