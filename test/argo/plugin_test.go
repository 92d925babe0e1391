//go:build argo

package argo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAStepSucceedsWithItsOutputs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.plugin()
	good := b.submit(of(script("echo 42", ", result: stdout")))
	bad := b.submit(of(script("echo half; echo oh no >&2; exit 3", ", result: stdout")))
	step := b.until(good, "Succeeded").step(t, good)
	require.Equal(t, "42", step.Outputs.Result)
	require.Equal(t, "0", step.Outputs.ExitCode)
	require.Equal(t, "Succeeded", step.parameter("phase"))
	step = b.until(bad, "Failed").step(t, bad)
	t.Logf("%+v", step)
	require.Equal(t, "3", step.Outputs.ExitCode)
	require.Contains(t, step.Message, "exit code 3: oh no")
	require.Contains(t, step.parameter("stderr"), "oh no")
}
