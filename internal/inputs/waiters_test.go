package inputs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWaiters(t *testing.T) {
	var w Waiters
	require.Empty(t, w.Of("n/a"))
	w.Wait("n/1", []string{"n/a", "n/b"})
	w.Wait("n/2", []string{"n/a"})
	require.ElementsMatch(t, []string{"n/1", "n/2"}, w.Of("n/a"))
	w.Wait("n/1", []string{"n/b"})
	require.Equal(t, []string{"n/2"}, w.Of("n/a"))
	w.Forget("n/2")
	w.Forget("n/2")
	require.Empty(t, w.Of("n/a"))
	require.Equal(t, []string{"n/1"}, w.Of("n/b"))
	w.Forget("n/1")
	require.Empty(t, w.of)
	require.Empty(t, w.wait)
}
