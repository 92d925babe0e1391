# What comes before is sshd's and HTCondor's: see Joined.
printf '\0' >&2
refuse() {
	echo "htcd: $*" >&2
	exit 125
}
PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin
command -v nsenter >/dev/null || refuse "this node has no nsenter, which joins the job's container"
command -v setpriv >/dev/null || refuse "this node has no setpriv"
field() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status" 2>/dev/null; }

# Both this and the job come from HTCondor's starter.
starter=$$
until [ "$(field "$starter" Name)" = condor_starter ]; do
	starter=$(field "$starter" PPid)
	[ "${starter:-0}" -gt 1 ] || refuse "the job's condor_starter is not to be found"
done
deep=$(($(field $$ NSpid | wc -w) + 1))

# The container's first process is 1 in a namespace of its own, one deeper than this; its first child is the script, once it has HTCPROCID, which
# nothing outside of the container has.
init='' script=''
look() {
	for path in $(grep -ls '^NSpid:.*[[:space:]]1$' /proc/[0-9]*/status); do
		pid=${path//[!0-9]/}
		[ "$(field "$pid" NSpid | wc -w)" = "$deep" ] || continue
		above=$pid
		while [ "${above:-0}" -gt 1 ] && [ "$above" != "$starter" ]; do
			above=$(field "$above" PPid)
		done
		[ "$above" != "$starter" ] || init=$pid
	done
	[ -n "$init" ] || return 1
	[ "$(readlink "/proc/$init/ns/user")" != "$(readlink /proc/self/ns/user)" ] ||
		refuse "apptainer is installed setuid root on this node, and nobody else can join its containers"
	{ read -r script _ <"/proc/$init/task/$init/children"; } 2>/dev/null || :
	[ -n "$script" ] && grep -qzs ^HTCPROCID= "/proc/$script/environ"
}
for ((tries = 30; tries > 0; tries--)); do # it may still be prepared
	! look || break
	sleep 1
done
[ -n "$script" ] || refuse "the job has no container now: it is being prepared, or has just ended"

# The script's own variables, set where they mean nothing to a program outside of the container.
mapfile -d '' -t variables <"/proc/$script/environ" || refuse "the variables of the job cannot be read"
for i in "${!variables[@]}"; do
	[[ ${variables[i]} == *=* ]] || unset "variables[$i]"
done
if [ -n "$terminal" ]; then
	variables+=("TERM=$terminal")
	# Ctrl-C would end nsenter, too, and with it the connection. A shell in between puts the command in the foreground, alone; one that is stopped is
	# continued, since nobody could. It is no loop: bash leaves that when a job is stopped. 148 is 128 and SIGTSTP.
	sh=/proc/$script/root/bin/sh
	if [ -e "$sh" ] || [ -L "$sh" ]; then # an absolute link does not lead there from here
		set -- /bin/sh -c 'set -m
on() { [ "$code" != 148 ] || ! jobs %% >/dev/null 2>&1 || { fg >/dev/null; code=$?; on; }; }
"$@"; code=$?; on; exit "$code"' sh "$@"
	fi
fi
cd / || exit 125
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin setpriv --no-new-privs \
	nsenter --target "$script" --user --preserve-credentials --mount --pid --ipc --root --wd -- env -i "${variables[@]}" "$@"
