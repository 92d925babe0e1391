//go:build !releases

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/trial"
)

// shim converts commands for htcd's pod to those for the htcd of a lab without a node.
const shim = `set -euo pipefail
kubectl() {
	if [ "${1-} ${2-}" = "-n htcd" ]; then
		shift 2
		if [ "${1-} ${2-} ${3-}" = "exec deploy/htcd --" ]; then shift 3; "$@"; return; fi
		set -- -n default "$@"
	elif [ "${1-}" = htcjob ]; then
		set -- "$@" -n "$NAMESPACE"
	else
		set -- -n "$NAMESPACE" "$@"
	fi
	command kubectl "$@"
}
set -x
`

// limit is how long a reader waits; a test waits as long as all do.
var limit = regexp.MustCompile(`--timeout=\d+[ms]\b`)

// notInPlain reports whether a block is not for a lab without a node.
func notInPlain(b trial.Block) bool { return b.NotRun != "" || b.OnNode }

// ofUsers are the documents whose commands concern their reader's own namespace alone.
var ofUsers = []string{
	"data.md",
	"from-condor-submit.md",
	"from-harvester.md",
	"from-state-machine.md",
	"user.md",
	"workflows.md",
}

// TestTheCommandsOfTheDocsWork runs each document for administrators from beginning to end, one after the other.
func TestTheCommandsOfTheDocsWork(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(clone(t), "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if name := filepath.Base(file); !slices.Contains(ofUsers, name) {
			t.Run(name, func(t *testing.T) { read(t, name, nil) })
		}
	}
}

// TestTheCommandsOfTheDocsForUsersWork runs each document for users, in a namespace of its own.
func TestTheCommandsOfTheDocsForUsersWork(t *testing.T) {
	t.Parallel()
	for _, name := range ofUsers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read(t, name, trial.New(t))
		})
	}
}

// read runs the commands of a document, in the namespace of user unless that is nil.
func read(t *testing.T, document string, user *trial.Bench) {
	t.Helper()
	running, err := lab.Find()
	require.NoError(t, err)
	var script strings.Builder
	for _, block := range trial.Blocks(t, filepath.Join(clone(t), "docs", document)) {
		if !notInPlain(block) {
			script.WriteString(limit.ReplaceAllString(block.Text, "--timeout="+trial.Patience.String()))
		}
	}
	if script.Len() == 0 {
		return
	}
	// Tests of another lab may run beside this one.
	commands, environment := atTheLab(t, strings.ReplaceAll(script.String(), "/tmp/", t.TempDir()+"/"))
	kubeconfig, namespace := running.Kubeconfig(), "default"
	if user != nil {
		namespace = user.Namespace
		kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		text, err := os.ReadFile(running.Kubeconfig())
		require.NoError(t, err)
		own := strings.Replace(string(text), "namespace: default", "namespace: "+namespace, 1)
		require.NotEqual(t, string(text), own)
		require.NoError(t, os.WriteFile(kubeconfig, []byte(own), 0o600))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*trial.Patience)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", shim+commands)
	c.Dir = clone(t)
	c.Env = append(
		os.Environ(),
		"HTCD_LAB="+running.Dir,
		"NAMESPACE="+namespace,
		"KUBECONFIG="+kubeconfig,
		"HTCD_LEDGER="+running.Ledger(),
		"PATH="+running.Path("bin")+":"+os.Getenv("PATH"),
	)
	c.Env = append(c.Env, environment...)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func clone(t *testing.T) string {
	t.Helper()
	dir, err := lab.CloneAround(".")
	require.NoError(t, err)
	return dir
}
