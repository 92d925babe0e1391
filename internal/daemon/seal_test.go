package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"htc.cern.ch/htcd/internal/ledger"
)

func TestALedgerThatIsPutBackIsNotTheOneThatWasClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "htcjobs.db")
	require.Empty(t, sealOf(path), "there is none")
	require.NoError(t, os.WriteFile(path, []byte("ledger"), 0o600))
	seal := sealOf(path)
	require.NotEmpty(t, seal)
	require.Equal(t, seal, sealOf(path))

	require.NoError(t, os.WriteFile(path+"-wal", []byte("more"), 0o600))
	require.Empty(t, sealOf(path), "it was not closed")
	require.NoError(t, os.Truncate(path+"-wal", 0))
	require.Equal(t, seal, sealOf(path))

	require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	require.NotEqual(t, seal, sealOf(path), "a copy of another time")
}

func TestWhatHasTakenThePlaceOfTheLedgerIsNotSealed(t *testing.T) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "htcd", Name: "htcd"}}
	lease.Spec.HolderIdentity = new("one")
	d := &daemon{
		o:     Options{OwnSpace: "htcd", LeaseName: "htcd", Data: t.TempDir()},
		core:  fake.NewClientset(lease),
		lease: newLeaseTimes(),
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(d.o.LedgerFile()), 0o700))
	sealedAfter := func(outcome error) bool {
		err := d.sealed(t.Context(), "one", func(context.Context) error {
			require.NoError(t, os.WriteFile(d.o.LedgerFile(), []byte("ledger"), 0o600))
			return outcome
		})
		require.ErrorIs(t, err, outcome)
		lease, err := d.core.CoordinationV1().Leases("htcd").Get(t.Context(), "htcd", metav1.GetOptions{})
		require.NoError(t, err)
		_, is := lease.Annotations[sealAnnotation]
		return is
	}
	require.True(t, sealedAfter(nil))
	require.False(t, sealedAfter(fmt.Errorf("write ledger: %w", ledger.ErrLost)))
}
