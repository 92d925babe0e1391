package krb

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseCache(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	whole := cacheFile(now, now.Add(time.Hour), now.Add(2*time.Hour), true)
	got, err := parseCache(whole)
	require.NoError(t, err)
	require.Equal(t, times{now, now.Add(time.Hour), now.Add(2 * time.Hour)}, got)
	got, err = parseCache(cacheFile(now, now.Add(time.Hour), now.Add(2*time.Hour), false))
	require.NoError(t, err)
	require.True(t, got.renewTill.IsZero())
	for n := range whole {
		_, err := parseCache(whole[:n])
		require.Error(t, err, "the first %d bytes", n)
	}
}

func FuzzParseCache(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	f.Add(cacheFile(now, now.Add(time.Hour), now, true))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parseCache(b) })
}

func TestACacheThatIsTooLargeIsNotRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, os.WriteFile(name, []byte{5, 4}, 0o600))
	require.NoError(t, os.Truncate(name, 1<<30))
	_, err := readCache(name)
	require.ErrorContains(t, err, "has more than 1048576 bytes")
}
