package reconciler

import (
	"errors"
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

func TestTheAdministratorHearsOnceWhyAStatusIsNotWritten(t *testing.T) {
	m := Memory[struct{}]{UID: func(string) string { return "uid-one" }}
	m.Written("a/b")
	require.Zero(t, m.Len(), "nothing is remembered of what goes well")
	require.True(t, m.NotWritten("a/b", errors.New("forbidden, request 1")))
	require.False(t, m.NotWritten("a/b", errors.New("forbidden, request 2")))
	require.True(t, m.NotWritten("a/b", errors.New("too many requests")))
	m.Written("a/b")
	require.True(t, m.NotWritten("a/b", errors.New("too many requests")))
}
