package sending

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

func at(name string) backend.Target { return backend.Target{Endpoint: schedd.Endpoint{Schedd: name}} }

func TestPlacesNameEachScheddOnce(t *testing.T) {
	require.Equal(t, []backend.Target{at("")}, Places(at(""), nil, ""))
	require.Equal(t, []backend.Target{at("b"), at("a"), at("c")}, Places(at("b"), []string{"a", "b", "c"}, "c"))
	require.Equal(t, []backend.Target{at("a"), at("gone")}, Places(at("a"), nil, "gone"))
}

func TestAnAttemptIsWhereAJobOfHtcdsIs(t *testing.T) {
	job := func(attempt int) []condor.Job { return []condor.Job{{Tag: condor.Tag{Attempt: attempt}}} }
	for name, c := range map[string]struct {
		found []Found
		want  string
	}{
		"in the second queue":                          {[]Found{{}, {Queued: job(1)}, {}}, "b"},
		"in the third history":                         {[]Found{{}, {}, {Left: job(1)}}, "c"},
		"whatever others have put into the first":      {[]Found{{Others: job(1)}, {Queued: job(1)}, {}}, "b"},
		"another attempt does not count":               {[]Found{{Queued: job(2)}, {}, {Queued: job(1)}}, "c"},
		"if it is nowhere, others' jobs are looked at": {[]Found{{}, {}, {Others: job(1)}}, "c"},
		"nowhere": {[]Found{{}, {}, {}}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []At
			for i, f := range c.found {
				all = append(all, At{at(string(rune('a' + i))), f})
			}
			require.Equal(t, c.want, Where(all, 1).Endpoint.Schedd)
		})
	}
}
