package reconciler

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

func TestTheLedgerRemembersTheQueuesOfASchedd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "htcjobs.db")
	book, err := ledger.Open(t.Context(), path)
	require.NoError(t, err)
	at := schedd.Endpoint{Schedd: "a"}
	since := func(born, minute int64) schedd.Queue {
		return schedd.Queue{Born: born, Since: time.Unix(60*minute, 0).UTC()}
	}
	for _, c := range []struct{ now, want []schedd.Queue }{
		{[]schedd.Queue{since(7, 1), since(7, 2)}, []schedd.Queue{since(7, 1)}},
		{[]schedd.Queue{since(5, 3), since(5, 4)}, []schedd.Queue{since(7, 1), since(5, 3)}},
		{[]schedd.Queue{since(7, 5)}, []schedd.Queue{since(7, 1), since(5, 3), since(7, 5)}},
	} {
		for _, now := range c.now {
			all, err := queues(book)(t.Context(), at, now)
			require.NoError(t, err)
			require.Equal(t, c.want, all)
		}
	}
	require.NoError(t, book.Close())

	dry, err := ledger.OpenReader(t.Context(), path)
	require.NoError(t, err)
	all, err := queues(dry)(t.Context(), at, since(9, 6))
	require.NoError(t, err)
	require.Equal(t, []schedd.Queue{since(7, 1), since(5, 3), since(7, 5), since(9, 6)}, all)
	require.NoError(t, dry.Close())
}

func TestAQueueIsNotedOnceIfTheClockGoesBack(t *testing.T) {
	book, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "htcjobs.db"))
	require.NoError(t, err)
	defer book.Close()
	since := func(born, minute int64) schedd.Queue {
		return schedd.Queue{Born: born, Since: time.Unix(60*minute, 0).UTC()}
	}
	first, second, third := since(7, 1), since(5, 900), since(3, 20)
	for _, now := range []schedd.Queue{first, second, since(5, 10), third, since(3, 21), since(3, 22)} {
		_, err := queues(book)(t.Context(), schedd.Endpoint{Schedd: "a"}, now)
		require.NoError(t, err)
	}
	all, err := queues(book)(t.Context(), schedd.Endpoint{Schedd: "a"}, since(3, 23))
	require.NoError(t, err)
	require.Equal(t, []schedd.Queue{first, since(5, 10), third, second}, all)
}

type nobody struct{ backend.Credentials }

func TestTheAccountsOfAllKindsAreProvedTogether(t *testing.T) {
	s := NewShared(nil, nobody{}, nil, backend.Pace{}, time.Now)
	var news []string
	for _, name := range []string{"jobs", "workflows"} {
		account := backend.Account{Namespace: name}
		s.depend = append(s.depend, func(all map[backend.Account]struct{}) { all[account] = struct{}{} })
		s.proved = append(s.proved, func(map[backend.Account]bool) { news = append(news, name) })
	}
	require.Equal(t, map[backend.Account]struct{}{{Namespace: "jobs"}: {}, {Namespace: "workflows"}: {}}, s.Prover.Accounts())
	s.Prover.Turned(nil)
	require.Equal(t, []string{"jobs", "workflows"}, news)
}
