package parts

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"
	"time"
)

//go:embed condor_config.server
var serverConfig string

//go:embed condor_config.client
var clientConfig string

//go:embed schedd-gate.sh
var scheddGate string

//go:embed credmon.sh
var credmon string

//go:embed xrdcp-plugin.sh
var xrdcpPlugin string

//go:embed davs-plugin.sh
var davsPlugin string

// Condor is a complete HTCondor on one machine: master, collector, negotiator, schedd and startd behind one port.
func Condor(ctx context.Context, w World) (*Process, error) {
	dir := w.Lab.Path("condor")
	for name, mode := range map[string]os.FileMode{
		"log": 0o755, "lock": 0o755, "spool": 0o755, "execute": 0o755, "run": 0o755,
	} {
		if _, err := directory("condor", mode, dir, name); err != nil {
			return nil, err
		}
	}
	if _, err := directory("condor", 0o700, dir, "credentials"); err != nil {
		return nil, err
	}
	if _, err := directory("root", 0o700, dir, "passwords.d"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "passwords.d", "POOL"), []byte("lab"), 0o600); err != nil {
		return nil, err
	}
	if err := issuer(ctx, w, dir); err != nil {
		return nil, err
	}
	for file, text := range map[string]string{"server.conf": serverConfig, "client.conf": clientConfig} {
		if err := render(filepath.Join(dir, file), text, w); err != nil {
			return nil, err
		}
	}
	for file, text := range map[string]string{"schedd-gate": scheddGate, "credmon": credmon, "xrdcp-plugin": xrdcpPlugin, "davs-plugin": davsPlugin} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			return nil, err
		}
	}
	trusted := filepath.Join(dir, "certificates")
	if err := trustAuthority(ctx, w, trusted); err != nil {
		return nil, err
	}
	env := []string{"CONDOR_CONFIG=" + filepath.Join(dir, "server.conf"),
		"KRB5_CONFIG=" + w.Lab.Path("krb", "krb5.conf"), "X509_CERT_DIR=" + trusted}
	return &Process{
		Name: "condor", Log: w.Lab.Log("condor"), Port: w.Ports.Condor,
		Args:    []string{"/usr/sbin/condor_master", "-f"},
		Env:     env,
		Ready:   func(ctx context.Context) error { return poolReady(ctx, env) },
		Orderly: syscall.SIGQUIT,
		Grace:   15 * time.Second,
	}, nil
}

// poolReady returns nil if the schedd answers and the collector knows both it and a slot, so that a job sent now would
// run.
func poolReady(ctx context.Context, env []string) error {
	if err := scheddReady(ctx, env); err != nil {
		return err
	}
	out, err := command(ctx, env, "", "condor_status", "-any", "-af", "MyType")
	if err != nil {
		return err
	}
	if !strings.Contains(out, "Scheduler") {
		return errors.New("the collector knows no schedd")
	}
	// Newer versions call the machine's ad a slot.
	if !strings.Contains(out, "Machine") && !strings.Contains(out, "Slot") {
		return errors.New("the collector knows no slot")
	}
	return nil
}

// pingWithin limits one condor_ping, which has been seen to take more than 5 s with a load of 70 on two cores.
const pingWithin = 30 * time.Second

// scheddReady asks the usual schedd, or another one by its name.
func scheddReady(ctx context.Context, env []string, name ...string) error {
	ctx, cancel := context.WithTimeout(ctx, pingWithin)
	defer cancel()
	args := append(append([]string{"condor_ping", "-quiet"}, name...), "-type", "SCHEDD", "READ")
	_, err := command(ctx, env, "", args...)
	return err
}

func render(file, text string, w World) error {
	t, err := template.New(filepath.Base(file)).Option("missingkey=error").Parse(text)
	if err != nil {
		return err
	}
	var b strings.Builder
	err = t.Execute(&b, map[string]any{
		"Dir": w.Lab.Path("condor"), "Krb": w.Lab.Path("krb"),
		"Port": w.Ports.Condor, "Domain": Domain, "Realm": Realm, "Schedd2": Schedd2Name,
		"Port2": w.Ports.Pool2, "Pool2Schedd": Pool2Schedd,
		"Address": w.Address, "Host": w.Host(), "Audience": SciTokenAudience, "CA": ReceiverCA(w),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
