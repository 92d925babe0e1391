package jobcredentials

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func token(end time.Time) string {
	return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp": %d}`, end.Unix())) + ".x"
}

// failing is an apiserver that does not answer.
type failing struct{}

func (failing) Read(context.Context, string, string, string, int) ([]byte, error) {
	return nil, errors.New("no answer")
}

func TestTheEndsOfCredentialsAreWatched(t *testing.T) {
	w := newWorld()
	now := time.Unix(1_800_000_000, 0)
	var changed []string
	watch := &Watch{
		Secrets: w,
		Served:  true,
		Now:     func() time.Time { return now },
		Changed: func(key string) { changed = append(changed, key) },
		Holders: func() []Holder { return []Holder{{"physics/fit", "uid-fit", "physics", w.run.Credentials}} },
	}
	look := func(reason, says string, news bool) {
		t.Helper()
		changed = nil
		watch.Look(t.Context())
		f := watch.Of("uid-fit")
		require.NotNil(t, f)
		require.Equal(t, reason, f.Reason)
		require.Contains(t, f.Message, says)
		require.Equal(t, reason == reasonValid, f.Fresh)
		require.Equal(t, news, len(changed) == 1)
	}
	look(reasonValid, "nothing is known", true)
	w.secrets["wlcg/token"] = token(now.Add(20 * time.Minute))
	look(reasonValid, "wlcg ends at 2027-01-15T08:20:00Z", true)
	look(reasonValid, "wlcg ends at", false)
	now = now.Add(15 * time.Minute)
	look(reasonEnding, "renew the Secret wlcg", true)
	require.Equal(t, map[string]int{stateEnding: 1}, watch.States())
	now = now.Add(5 * time.Minute)
	look(ReasonEnded, "ended at", true)
	require.Equal(t, map[string]int{stateEnded: 1}, watch.States())
	watch.Secrets = failing{}
	look(ReasonEnded, "ended at", false)
	watch.Secrets = w
	w.secrets["wlcg/token"] = token(now.Add(20 * time.Minute))
	look(reasonValid, "wlcg ends at", true)
	delete(w.secrets, "eos/keytab")
	look("SecretNotFound", "credential eos", true)
	require.Equal(t, map[string]int{stateUnusable: 1}, watch.States())
	w.secrets["eos/keytab"] = "x"
	watch.Served = false
	watch.Look(t.Context())
	f := watch.Of("uid-fit")
	require.True(t, f.Fresh)
	require.Equal(t, reasonNotRenewed, f.Reason)
	require.Contains(t, f.Message, "wlcg ends at 2027-01-15T08:40:00Z; jobs keep those that they were sent with")
	watch.Holders = func() []Holder { return nil }
	watch.Look(t.Context())
	require.Empty(t, watch.States())
}
