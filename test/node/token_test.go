//go:build node

package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// genericSite writes the lab's site over deploy/overlays/generic, and so without Kerberos.
func genericSite(b bench) (dir string) {
	b.T.Helper()
	clone, err := lab.CloneAround(".")
	require.NoError(b.T, err)
	world, err := parts.Open(b.Lab)
	require.NoError(b.T, err)
	over, dir := b.Lab.Path("node", "overlay"), b.Lab.Path("node", "generic")
	read := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(b.T, err)
		return string(text)
	}
	kustomization := read(filepath.Join(over, "kustomization.yaml"))
	for was, is := range map[string]string{"/deploy/base\"": "/deploy/overlays/generic\"", "[condor_config, krb5.conf]": "[condor_config]"} {
		require.Contains(b.T, kustomization, was)
		kustomization = strings.ReplaceAll(kustomization, was, is)
	}
	require.NoError(b.T, os.MkdirAll(dir, 0o755))
	for name, text := range map[string]string{
		"kustomization.yaml": kustomization,
		"volume.yaml":        read(filepath.Join(over, "volume.yaml")),
		"settings.env":       read(filepath.Join(over, "settings.env")),
		"condor_config":      read(filepath.Join(clone, "deploy", "overlays", "generic", "condor_config")) + parts.SiteOf(world),
	} {
		require.NoError(b.T, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// install applies a site and waits until its pod is ready.
func (b bench) install(ctx context.Context, site string) {
	b.T.Helper()
	for _, args := range [][]string{
		{"apply", "-k", site},
		{"-n", parts.PodNamespace, "rollout", "status", "deployment/htcd", "--timeout=90s"},
	} {
		_, err := b.Lab.Run(ctx, "kubectl", args...)
		require.NoError(b.T, err)
	}
}

func TestThePodOfAGenericPoolWorksWithItsTokenAndWithoutAKDC(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	token, err := parts.Token(
		ctx,
		b.Lab,
		parts.TokenAsk{Account: "robot", Life: time.Hour, Only: []string{"READ", "WRITE"}},
	)
	require.NoError(t, err)
	file := b.Lab.Path("node", "token")
	require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	site := genericSite(b)
	kdc := b.Lab.Part("kdc")
	b.Condor("condor_q", "false") // gets the lab's own tools their ticket for the schedd while the KDC answers
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		require.NoError(t, kdc.Start(ctx))
		b.install(ctx, b.Lab.Path("node", "overlay"))
		_, err := b.Lab.Run(ctx, "kubectl", "-n", parts.PodNamespace, "delete", "secret", "condor-token")
		require.NoError(t, err)
		require.NoError(t, os.Remove(file))
	})
	require.NoError(t, kdc.Stop(ctx))
	b.htcd("create", "secret", "generic", "condor-token", "--from-file=token="+file)
	b.install(ctx, site)

	require.NotContains(t, b.htcd("get", "deployment/htcd", "-o", "yaml"), "KRB5")
	b.Eventually(func() bool {
		said, err := b.Lab.Run(ctx, "kubectl", "-n", parts.PodNamespace, "exec", "deploy/htcd", "--", "htcd", "doctor")
		return err == nil && strings.Contains(said, "token of robot@"+parts.Domain+", good for")
	}, func() string { return b.htcd("exec", "deploy/htcd", "--", "htcd", "doctor") })
	b.Script("tokened", "echo out of the pod\n")
	job := b.Fetched("tokened")
	require.EqualValues(t, 1, job.Status.Succeeded)
	require.Equal(t, "out of the pod\n", b.Output(job, 0))
	b.Eventually(
		func() bool { return len(b.Condor("condor_history", trial.Tagged(job))) == 1 },
		func() string { return "it stays in the queue" },
	)
	require.Equal(t, []string{job.Status.JobID[0] + " robot"}, b.Condor("condor_history", trial.Tagged(job), "Owner"))
	b.Kubectl("delete", "htcjob", "tokened", "--timeout="+trial.Patience.String())
}
