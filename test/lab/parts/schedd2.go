package parts

import (
	"context"
	_ "embed"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed condor_config.schedd2
var schedd2Config string

// Schedd2Name is the second schedd's name in the collector. Its first cluster is also 1.
const Schedd2Name = "second@" + Domain

// Schedd2 is another schedd in the pool of condor, which must run. It is for tests that ask for it: a lab comes up
// without it.
func Schedd2(w World) (*Process, error) {
	dir := w.Lab.Path("condor")
	if _, err := directory("condor", 0o755, dir, "spool2"); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "schedd2.conf")
	if err := render(config, schedd2Config, w); err != nil {
		return nil, err
	}
	env := []string{"CONDOR_CONFIG=" + config, "KRB5_CONFIG=" + w.Lab.Path("krb", "krb5.conf")}
	return &Process{
		Name: "schedd2", Log: w.Lab.Log("schedd2"), Port: w.Ports.Condor, Spare: true,
		Args: []string{"/usr/sbin/condor_schedd", "-f"}, Env: env,
		Ready: func(ctx context.Context) error { return scheddReady(ctx, env, "-name", Schedd2Name) },
		// HTCondor's fast shutdown leaves running jobs to be found again at the next start.
		Orderly: syscall.SIGQUIT,
		Grace:   15 * time.Second,
	}, nil
}
