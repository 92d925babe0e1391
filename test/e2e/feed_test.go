package e2e

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/feed"
	"htc.cern.ch/htcd/test/trial"
)

// ads are jobs by their numbers, each with its attributes.
type ads map[string]map[string]string

// An operator and a real number have two spellings each: once HTCondor has evaluated an expression, it prints it in its
// own.
var (
	sameOperators = strings.NewReplacer(" isnt ", " =!= ", " is ", " =?= ")
	realNumber    = regexp.MustCompile(`\b\d+\.\d+(E[+-]\d+)?\b`)
)

func sameSpelling(expression string) string {
	return realNumber.ReplaceAllStringFunc(sameOperators.Replace(expression), func(number string) string {
		f, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return number
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	})
}

// unwritten is what the schedd has in its memory only: when it was asked, and when the cluster had its first match
// (25.14).
var unwritten = []string{"servertime", "firstjobmatchdate"}

// readAds reads ads without what the schedd does not write down, such as what it makes for the negotiator.
func readAds(b *trial.Bench, text string) ads {
	b.T.Helper()
	all := ads{}
	require.NoError(b.T, classad.ReadJSON(strings.NewReader(text), func(a classad.Ad) error {
		values := map[string]string{}
		for _, at := range a {
			if name := strings.ToLower(at.Name); !slices.Contains(unwritten, name) &&
				!strings.HasPrefix(name, "autocluster") {
				values[name] = sameSpelling(at.Value.String())
			}
		}
		all[values["clusterid"]+"."+values["procid"]] = values
		return nil
	}))
	return all
}

func askMirror(b *trial.Bench, m *feed.Mirror, constraint string, left bool) ads {
	b.T.Helper()
	var lines []string
	require.NoError(
		b.T,
		m.Answer(
			b.T.Context(),
			feed.Asked{Question: schedd.Question{Left: left, Constraint: constraint}},
			func(ad []byte) error {
				lines = append(lines, string(ad))
				return nil
			},
		),
	)
	return readAds(b, "["+strings.Join(lines, ",")+"]")
}

func askTool(b *trial.Bench, constraint, tool string, args ...string) ads {
	b.T.Helper()
	text, err := b.Lab.Run(b.T.Context(), tool, append(args, "-json", "-constraint", constraint)...)
	require.NoError(b.T, err)
	return readAds(b, text)
}

func TestTheFeedShowsJobsAsHTCondorDoes(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	m := feed.NewMirror(feed.Options{Spool: b.Lab.Path("condor", "spool")})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx, func(string) {}) }()
	defer func() { stop(); <-ended }()
	b.Eventually(func() bool { return m.State().Problem == "" }, func() string { return m.State().Problem })

	constraint := trial.Tagged(b.Create("shown", "sleep 1000", trial.Queue(2)))
	do := func(tool string, args ...string) {
		t.Helper()
		_, err := b.Lab.Run(t.Context(), tool, append([]string{"-constraint", constraint}, args...)...)
		require.NoError(t, err)
	}
	all := func(these ads, status string) bool {
		return !slices.ContainsFunc(
			slices.Collect(maps.Values(these)),
			func(ad map[string]string) bool { return ad["jobstatus"] != status },
		)
	}
	shows := func(status string) (shown ads) {
		t.Helper()
		var said ads
		b.Eventually(func() bool {
			said = askTool(b, constraint, "condor_q", "-allusers")
			if len(said) != 2 || !all(said, status) {
				return false
			}
			// Where a run begins and ends, the schedd does not flush job_queue.log: that waits for the next change that
			// has to last.
			do("condor_qedit", "Looked", strconv.FormatInt(time.Now().UnixNano(), 10))
			said, shown = askTool(b, constraint, "condor_q", "-allusers"), askMirror(b, m, constraint, false)
			if status == "2" { // its shadow writes now and then what a job does, so the two may differ in that
				return len(shown) == 2 && all(shown, status)
			}
			return len(said) == 2 && maps.EqualFunc(said, shown, maps.Equal)
		}, func() string { require.Equal(t, said, shown); return "other states than " + status })
		return shown
	}
	for _, ad := range shows("2") {
		require.NotContains(t, ad, "claimid")
		require.NotEmpty(t, ad["publicclaimid"])
	}
	_, mark, _, _ := m.Changes(feed.Mark{})
	do("condor_hold")
	held := shows("5")
	changed, _, _, known := m.Changes(mark)
	require.True(t, known)
	for id := range held {
		require.Contains(t, changed, id)
	}
	for name, value := range map[string]string{
		"Odd": `"back\slash \"quoted\" ü"`, "Many": `{1, "two", 3.0, RequestCpus}`, "Nested": `[a = 1; b = "c"]`, "Large": "1e30", "Nothing": "undefined",
	} {
		do("condor_qedit", name, value)
	}
	for _, ad := range shows("5") {
		require.Contains(t, ad, "nested")
	}
	b.Kubectl("delete", "htcjob", "shown")
	said := askTool(b, constraint, "condor_history")
	require.Len(t, said, 2)
	b.Eventually(func() bool {
		return len(askMirror(b, m, constraint, true)) == 2 && len(askMirror(b, m, constraint, false)) == 0
	}, func() string { return "it has left" })
	require.Equal(t, said, askMirror(b, m, constraint, true))
}
