package operator

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/job"
	"htc.cern.ch/htcd/internal/serve/control"
)

func TestALongTableIsPrintedInBlocks(t *testing.T) {
	report := job.Report{Differences: make([]crosscheck.Difference, 5*block+1)}
	var out bytes.Buffer
	require.NoError(t, PrintOutcome(&out, "table", control.Outcome{Report: report}, true))
	require.Equal(t, len(report.Differences)+2, bytes.Count(out.Bytes(), []byte("\n")))
	require.Contains(t, out.String(), "0 jobs checked, 5001 differ; nothing was changed\n")
}
