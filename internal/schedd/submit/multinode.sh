# A job of several nodes: HTCondor runs this wrapper on each of them, and ends all when that of node 0 has ended. Only node 0
# reports, and only what it leaves is brought back: what others print it prints itself (htcd multinode).

# become_node finds out which node this is.
become_node() {
	rank=${_CONDOR_PROCNO:-0}
	[ "$rank" = 0 ] || url=
	mkdir .htcd/multi && mv htcd-send .htcd/multi/htcd
}

# span has the command of the container run by htcd, which ties the nodes together, and names mpirun its hosts. The script
# cannot change what is in this directory: the callback is sent by the same program, outside of the container.
span() {
	mkdir -p .htcd/job/.htcd/multi
	(
		umask 077
		key=$(printf '%s %s' "$secret" "$jobid" | sha256sum)
		printf '%s' "${key%% *}" >.htcd/multi/key
	)
	host=0
	while [ "$host" -lt "${_CONDOR_NPROCS:-1}" ]; do
		echo "node$host slots=${cores:-1}"
		host=$((host + 1))
	done >.htcd/multi/hosts
	cat >.htcd/multi/start <<-end
		#!/bin/sh
		exec "$scratch/.htcd/multi/htcd" multinode start "$scratch/.htcd/multi" "\$@"
	end
	chmod 755 .htcd/multi/start
}

# stay waits until HTCondor ends this node, unless it has asked already: one that ended before node 0 would bring back its files at the
# same time, and they would be mixed up (23.9). If there was no container, htcd has not told node 0 yet.
stay() {
	[ -z "$ended" ] || return 0
	[ "$rc" -eq 0 ] || .htcd/multi/htcd multinode fail "$scratch/.htcd/multi" "$rc" 8<&-
	while :; do
		sleep 60
	done
}
