package plugin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

func TestSinceIsATimeADayOrAMoment(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"": "", "12h": "2026-11-20T00:00:00Z", "30d": "2026-10-21T12:00:00Z", "90m": "2026-11-20T10:30:00Z",
		"2026-11-19T01:02:03Z": "2026-11-19T01:02:03Z", "2026-11-19T01:02:03+01:00": "2026-11-19T00:02:03Z",
	} {
		at, err := sinceWhen(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, at)
	}
	for _, text := range []string{"yesterday", "-3h", "-3d", "d", "70000d", "2026-13-01", "12"} {
		require.Error(t, sinceKind.Check(text), text)
	}
}

// TestTheHistoryIsAskedForInPages has a server whose first answer is cut off.
func TestTheHistoryIsAskedForInPages(t *testing.T) {
	const many = historyPage + 10
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		require.Equal(t, "/apis/output.htc.cern.ch/v1alpha1/namespaces/ns/history", r.URL.Path)
		from := 0
		if before := r.URL.Query().Get("before"); before != "" {
			n, err := strconv.Atoi(before[strings.LastIndex(before, "/")+1:])
			require.NoError(t, err)
			from = n + 1
		}
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		require.NoError(t, err)
		require.Positive(t, limit, "0 would be all")
		for i := from; i < min(many, from+limit); i++ {
			if asked == 1 && i == 7 {
				panic(http.ErrAbortHandler)
			}
			require.NoError(
				t,
				json.NewEncoder(w).
					Encode(aggregate.Past{Name: "job", PastKey: aggregate.PastKey{UID: strconv.Itoa(i)}}),
			)
		}
		if limit == 3 { // the connection breaks after the last line
			require.NoError(t, http.NewResponseController(w).Flush())
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	base, err := url.Parse(server.URL)
	require.NoError(t, err)
	c := &cluster{namespace: "ns", base: base, http: server.Client()}
	for _, most := range []int{0, 3, many} {
		asked = 1
		if most == 0 {
			asked = 0
		}
		var got []string
		require.NoError(
			t,
			c.history(
				t.Context(),
				url.Values{},
				most,
				func(p aggregate.Past) error { got = append(got, p.UID); return nil },
			),
		)
		want := most
		if most == 0 {
			want = many
		}
		require.Len(t, got, want)
		for i, uid := range got {
			require.Equal(t, strconv.Itoa(i), uid)
		}
	}
}

func TestTheHistoryAsTableAndAsCSV(t *testing.T) {
	begun := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	p := aggregate.Past{
		Kind:      "HTCWorkflow",
		Namespace: "ns",
		Name:      "fit",
		PastKey:   aggregate.PastKey{Created: begun, UID: "u", Attempt: 2},
		User:      "alice",
		State:     "Failed",
		Reason:    "JobsFailed",
		Jobs:      9,
		Succeeded: 8,
		Failed:    1,
		Started:   begun,
		Finished:  begun.Add(time.Minute),
		Usage: &v1alpha1.Usage{
			Memory: &v1alpha1.Used{Median: resource.MustParse("1Gi"), Worst: resource.MustParse("2Gi")},
		},
	}
	var table strings.Builder
	require.NoError(t, pastTable(&table, true)(p))
	require.Regexp(t, `(?m)^NAMESPACE +NAME +ATTEMPT +USER`, table.String())
	require.Regexp(
		t,
		`(?m)^ns +wf/fit +2 +alice +9 +1  2026-11-20 \d\d:00 +1m0s +2Gi +Failed JobsFailed$`,
		table.String(),
	)
	var text strings.Builder
	show, flush := pastCSV(&text)
	require.NoError(t, show(p))
	require.NoError(t, flush())
	lines := strings.Split(text.String(), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, strings.Count(lines[0], ","), strings.Count(lines[1], ","))
	require.Equal(
		t,
		"HTCWorkflow,ns,fit,u,2,alice,,,0,Failed,JobsFailed,9,8,1,2026-11-20T12:00:00Z,,2026-11-20T12:00:00Z,2026-11-20T12:01:00Z,,,,1073741824,2147483648,",
		lines[1],
	)
}
