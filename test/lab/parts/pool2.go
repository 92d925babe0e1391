package parts

import (
	"context"
	_ "embed"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed condor_config.pool2
var pool2Config string

// Pool2Schedd is the schedd's name in the collector of the other pool.
const Pool2Schedd = "elsewhere@" + Domain

// Pool2 is a second HTCondor with a collector of its own. It is for tests that ask for it: a lab comes up without it.
func Pool2(w World) (*Process, error) {
	dir := w.Lab.Path("condor")
	for _, name := range []string{"", "log", "lock", "spool", "execute", "run"} {
		if _, err := directory("condor", 0o755, dir, filepath.Join("pool2", name)); err != nil {
			return nil, err
		}
	}
	config := filepath.Join(dir, "pool2.conf")
	if err := render(config, pool2Config, w); err != nil {
		return nil, err
	}
	env := []string{"CONDOR_CONFIG=" + config, "KRB5_CONFIG=" + w.Lab.Path("krb", "krb5.conf"),
		"X509_CERT_DIR=" + filepath.Join(dir, "certificates")}
	return &Process{
		Name: "pool2", Log: w.Lab.Log("pool2"), Port: w.Ports.Pool2, Spare: true,
		Args: []string{"/usr/sbin/condor_master", "-f"}, Env: env,
		Ready:   func(ctx context.Context) error { return poolReady(ctx, env) },
		Orderly: syscall.SIGQUIT,
		Grace:   15 * time.Second,
	}, nil
}
