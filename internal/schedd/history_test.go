package schedd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// slow answers from the beginning of the history, oldest first, and never from its end. It records its arguments.
const slow = `echo "$*" >>%s
case "$*" in
*-backwards*) exec sleep 1000 ;;
*"-attributes ClusterId,ProcId,JobStatus") echo '['; yes '{"ClusterId":1,"ProcId":0,"JobStatus":4},' | head -n %d; echo '{"ClusterId":1,"ProcId":0,"JobStatus":4}]' ;;
*) echo '[{"ClusterId":1,"ProcId":0,"JobStatus":4},{"ClusterId":2,"ProcId":0,"JobStatus":4},{"ClusterId":3,"ProcId":0,"JobStatus":4}]' ;;
esac`

func TestAHistoryThatIsNotReadFromItsEndIsReadFromItsBeginning(t *testing.T) {
	for name, c := range map[string]struct {
		length int
		kind   condor.Kind
	}{
		"and so from then on":                     {length: 3},
		"unless it is longer than a schedd shows": {length: maxForwards, kind: condor.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for the same deadline
			asked := filepath.Join(t.TempDir(), "asked")
			client := tools(
				t,
				5*time.Second,
				map[string]string{"condor_history": fmt.Sprintf(slow, asked, c.length), "condor_ping": ""},
			)
			seen := func(b HistoryBounds) (clusters []int, err error) {
				err = client.Query(
					t.Context(),
					Identity{},
					Query{Left: &b},
					func(j condor.Job) error { clusters = append(clusters, j.Cluster); return nil },
				)
				return clusters, err
			}
			all, err := seen(HistoryBounds{Since: "2.0"})
			if c.kind != 0 {
				require.Equal(t, c.kind, condor.KindOf(err))
				require.Empty(t, all)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []int{1, 2, 3}, all)
			newest, err := seen(HistoryBounds{Limit: 1})
			require.NoError(t, err)
			require.Equal(t, []int{3}, newest)
			text, err := os.ReadFile(asked)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(text), "-backwards"), "it is not tried each time")
		})
	}
}

// A reading from the end that is given up goes on at the schedd: with one more at each try, a slow machine would never
// get to the beginning in time.
func TestAHistoryIsNotReadFromItsEndAgainWhileItsBeginningIsLateToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	asked, free := filepath.Join(dir, "asked"), filepath.Join(dir, "free")
	late := fmt.Sprintf("[ -e %s ] || case \"$*\" in *-forwards*) exec sleep 1000 ;; esac\n", free)
	client := tools(
		t,
		5*time.Second,
		map[string]string{"condor_history": late + fmt.Sprintf(slow, asked, 1), "condor_ping": ""},
	)
	seen := 0
	ask := func() error {
		return client.Query(
			t.Context(),
			Identity{},
			Query{Left: &HistoryBounds{}},
			func(condor.Job) error { seen++; return nil },
		)
	}
	for range 2 {
		require.Equal(t, condor.Timeout, condor.KindOf(ask()))
	}
	require.NoError(t, os.WriteFile(free, nil, 0o600))
	require.NoError(t, ask())
	require.Equal(t, 3, seen)
	text, err := os.ReadFile(asked)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "-backwards"))
}

func TestOneAtATimeReadsAHistoryFromItsEnd(t *testing.T) {
	t.Parallel()
	asked := filepath.Join(t.TempDir(), "asked")
	client := tools(
		t,
		5*time.Second,
		map[string]string{"condor_history": fmt.Sprintf(slow, asked, 3), "condor_ping": ""},
	)
	var asking errgroup.Group
	for range 3 {
		asking.Go(func() error {
			return client.Query(
				t.Context(),
				Identity{},
				Query{Left: &HistoryBounds{}},
				func(condor.Job) error { return nil },
			)
		})
	}
	require.NoError(t, asking.Wait())
	text, err := os.ReadFile(asked)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "-backwards"), "the others would go on at the schedd, too")
}
