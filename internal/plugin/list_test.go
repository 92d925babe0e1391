package plugin

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/aggregate"
)

func TestFilesAreListed(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "attempt=2", r.URL.RawQuery)
		require.True(t, strings.HasSuffix(r.URL.Path, "/log/files"), r.URL.Path)
		w.Header().Set(aggregate.HeaderJobs, "3")
		_, _ = io.WriteString(w, `{"job":0,"path":"result/hist.root","size":1234}`+"\n"+`{"job":2,"path":"a\u001b[31m\nb","size":0}`+"\n")
	})
	var out, warnings strings.Builder
	require.Equal(t, Exit{ExitIncomplete}, c.list(t.Context(), &out, &warnings, "zero", -1, 2))
	require.Equal(t, "JOB            SIZE  FILE\n"+
		"0              1234  result/hist.root\n"+
		`2                 0  "a\x1b[31m\nb"`+"\n", out.String())
	require.Equal(t, "jobs whose output is missing: 1\n", warnings.String())
}

func TestAListThatBreaksOffIsNoList(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(aggregate.HeaderJobs, "1")
		_, _ = io.WriteString(w, `{"job":0,"pa`)
	})
	require.ErrorContains(t, c.list(t.Context(), io.Discard, io.Discard, "zero", 0, 0), "interrupted")
}
