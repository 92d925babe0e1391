#!/bin/sh
# HTCondor's own credential monitor is a bash script, and bash does not hear the SIGQUIT that ends a pool at once.
setsid /usr/sbin/condor_credmon_krb &
trap 'kill -TERM -$!; exit' QUIT TERM
wait
