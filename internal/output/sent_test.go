package output

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatAJobHasSentElsewhereIsRead(t *testing.T) {
	hex := strings.Repeat("0a", 32)
	for name, c := range map[string]struct {
		text string
		want []Sent
	}{
		"with checksums":         {"0 12\n3 0\n" + hex + "  0\n" + hex + " *3\n", []Sent{{0, 12, "sha256:" + hex}, {3, 0, "sha256:" + hex}}},
		"a checksum is missing":  {"0 12\n3 7\n" + hex + "  0\n", []Sent{{0, 12, "sha256:" + hex}, {3, 7, ""}}},
		"without checksums":      {"7 999999999999999999\n", []Sent{{7, 999999999999999999, ""}}},
		"it was cut off":         {"0 12\n3 7\n" + hex[:50], []Sent{{0, 12, ""}, {3, 7, ""}}},
		"it is something else":   {"-1 5\n100 5\n0 9999999999999999999\n0  5\n0 5 x\n\x1b[31m\n" + strings.ToUpper(hex) + "  0\n", nil},
		"it is empty":            {"", nil},
		"it is too long to read": {strings.Repeat("x", maxSent) + "\n0 12\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			fetch := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(fetch, "5", declared, "2"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(fetch, "5", declared, "2"+sentList), []byte(c.text), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(fetch, "5", declared, "9"+sentList), []byte("0 1\n"), 0o600))
			sent, err := SentBy(fetch, 5)
			require.NoError(t, err)
			require.Equal(t, c.want, sent)
			require.NoError(t, Unpack(fetch, 5))
			sent, err = SentBy(fetch, 5)
			require.NoError(t, err)
			require.Empty(t, sent)
		})
	}
	fetch := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(fetch, "0", declared, "0", "0"+sentList), 0o700))
	sent, err := SentBy(fetch, 0)
	require.NoError(t, err, "there is none")
	require.Empty(t, sent)
}
