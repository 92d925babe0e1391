package daemon

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
)

func TestNobodyRunsAnythingWhereImagesAreRestricted(t *testing.T) {
	d := &daemon{o: Options{AllowImages: []string{"/cvmfs/**"}}}
	why, err := d.closed(t.Context(), nil, ledgerRun("", ""))
	require.NoError(t, err)
	require.Contains(t, why, "--allow-images")

	d = &daemon{}
	why, err = d.closed(t.Context(), nil, ledgerRun("", ""))
	require.NoError(t, err)
	require.Empty(t, why)

	book := ledgertest.Open(t)
	for hash, c := range map[string]struct{ spec, why string }{
		"a": {`{"images": ["/cvmfs/**"]}`, "HTCPool p allows certain images alone"},
		"b": {`{"state": "Online"}`, ""},
	} {
		keepPoolSpec(t, book, hash, c.spec)
		why, err = d.closed(t.Context(), book, ledgerRun("p", hash))
		require.NoError(t, err)
		require.True(t, c.why == "" && why == "" || c.why != "" && strings.Contains(why, c.why), why)
	}
	_, err = d.closed(t.Context(), book, ledgerRun("p", "lost"))
	require.Error(t, err, "what is not known is not allowed")
}

func ledgerRun(pool, hash string) ledger.Run { return ledger.Run{Pool: pool, PoolSpec: hash} }

func keepPoolSpec(t *testing.T, book *ledger.Ledger, hash, spec string) {
	t.Helper()
	require.NoError(t, book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.KeepPoolSpec(hash, spec) }))
}
