package daemon

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
)

func TestReadyzSaysWhatIsWaitedFor(t *testing.T) {
	var h health
	ask := func() (int, string) {
		answer := httptest.NewRecorder()
		h.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return answer.Code, answer.Body.String()
	}
	for _, c := range []struct {
		change func()
		code   int
		words  string
	}{
		{func() {}, 503, "starting\n"},
		{func() { h.unready("waiting for the list of HTCJobs") }, 503, "waiting for the list of HTCJobs\n"},
		{func() { h.ready("ready") }, 200, "ready\n"},
		{func() { h.unready("the ledger cannot be written: disk full") }, 503, "the ledger cannot be written: disk full\n"},
	} {
		c.change()
		code, words := ask()
		require.Equal(t, c.code, code)
		require.Equal(t, c.words, words)
	}
}

func TestReadyzSaysWhyTheLeaseIsNotHadUntilItIs(t *testing.T) {
	var h health
	fails := h.asks("asking for the lease")
	fails(errors.New("forbidden"))
	fails(errors.New("refused"))
	require.Equal(t, state{false, "asking for the lease: refused"}, *h.state.Load())
	h.ready("ready")
	fails(errors.New("refused"))
	require.Equal(t, state{true, "ready"}, *h.state.Load())
}

func TestTheLedgerIsTriedAndLeftAsItWas(t *testing.T) {
	d := &daemon{o: Options{Data: t.TempDir()}}
	book, err := ledger.Open(t.Context(), d.o.LedgerFile())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, book.Close()) })
	before, err := os.ReadDir(filepath.Dir(d.o.LedgerFile()))
	require.NoError(t, err)
	require.NoError(t, d.tryLedger(t.Context(), book))
	after, err := os.ReadDir(filepath.Dir(d.o.LedgerFile()))
	require.NoError(t, err)
	require.Len(t, after, len(before))

	require.NoError(t, os.Remove(d.o.LedgerFile()))
	require.ErrorIs(t, d.tryLedger(t.Context(), book), ledger.ErrLost)
}

func TestWhatWaitsForTheLedgerGoesOnWhenItCanBeWrittenAgain(t *testing.T) {
	back := 0
	seen := tries{back: func() { back++ }}
	for _, c := range []struct {
		err  error
		want int
	}{{nil, 0}, {os.ErrPermission, 0}, {os.ErrPermission, 0}, {nil, 1}, {nil, 1}, {os.ErrPermission, 1}, {nil, 2}} {
		seen.ended(c.err)
		require.Equal(t, c.want, back)
	}
}

func TestTheLabelIsPutOnThisPodAloneAndTakenOff(t *testing.T) {
	require.JSONEq(
		t,
		`{"metadata":{"uid":"5e0c","labels":{"htc.cern.ch/leads":"true"}}}`,
		string(labelPatch("5e0c", true)),
	)
	require.JSONEq(t, `{"metadata":{"labels":{"htc.cern.ch/leads":null}}}`, string(labelPatch("", false)))
}
