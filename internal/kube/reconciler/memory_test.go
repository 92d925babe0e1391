package reconciler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheUserHearsOfTroubleOnceHoweverItsNumbersChange(t *testing.T) {
	m := Memory[struct{}]{UID: func(string) string { return "uid-one" }}
	full := func(free int) Blocker {
		return Blocked("", "NoSpace", fmt.Sprintf("%d KiB are free", free))
	}
	require.True(t, m.Block("a/b", Acting, full(8)))
	require.False(t, m.Block("a/b", Acting, full(4)))
	m.Wait("a/b", Blocked("", "AskingSchedd", "the schedd is asked"))
	require.False(t, m.Block("a/b", Acting, full(0)))
	require.True(t, m.Block("a/b", Acting, Blocked("", "Unreachable", "it does not answer")))
	m.Unblock("a/b", Acting)
	require.True(t, m.Block("a/b", Acting, full(0)))
}
