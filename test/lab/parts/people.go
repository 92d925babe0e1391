package parts

import (
	"slices"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/root"
)

// Environment returns that of an account of the root, for work with the command-line tools: robot, alice and admin have
// their own tickets, and admin may do anything to everybody's jobs.
func Environment(l *lab.Lab, account string) []string {
	home := "/home/" + account
	if account == "root" {
		home = "/root"
	}
	env := []string{
		"PATH=" + root.Path, "LANG=C.UTF-8", "USER=" + account, "HOME=" + home,
		"CONDOR_CONFIG=" + l.Path("condor", "client.conf"),
		"KRB5_CONFIG=" + l.Path("krb", "krb5.conf"),
	}
	if account == "admin" {
		env = append(env, "_CONDOR_CONDOR_Q_ONLY_MY_JOBS=False")
	}
	if slices.ContainsFunc(people, func(p person) bool { return p.account == account }) {
		env = append(env, "KRB5CCNAME=FILE:"+TicketFile(World{Lab: l}, account))
	}
	return env
}
