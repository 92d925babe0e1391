package plugin

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

func TestFilesAreListed(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "attempt=2", r.URL.RawQuery)
		require.True(t, strings.HasSuffix(r.URL.Path, "/log/files"), r.URL.Path)
		w.Header().Set(aggregate.HeaderJobs, "3")
		w.Header().Set(aggregate.HeaderAttempt, "2")
		_, _ = io.WriteString(
			w,
			`{"job":0,"path":"result/hist.root","size":1234}`+"\n"+`{"job":2,"path":"a\u001b[31m\nb","size":0}`+"\n",
		)
	})
	var out, warnings strings.Builder
	job := &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{Name: "zero"},
		Status: v1alpha1.HTCJobStatus{Attempt: 2, Outputs: []v1alpha1.WrittenOutput{
			{
				Path:   "big.root",
				Proc:   0,
				URL:    "https://a/b",
				Size:   new(int64(12)),
				Digest: "sha256:0a",
			}, {Path: "m", Proc: 2, Artifact: "r/m:v1"},
		}},
	}
	require.Equal(t, Exit{exitIncomplete}, c.list(t.Context(), &out, &warnings, job, -1, 2))
	require.Equal(t, "JOB            SIZE  FILE\n"+
		"0              1234  result/hist.root\n"+
		`2                 0  "a\x1b[31m\nb"`+"\n"+
		"JOB            SIZE  WRITTEN ELSEWHERE\n"+
		"0                12  big.root https://a/b sha256:0a\n"+
		"2                 ?  m r/m:v1\n", out.String())
	require.Equal(t, "jobs whose output is missing: 1\n", warnings.String())
	out.Reset()
	require.NoError(t, listElsewhere(&out, job.Status.Outputs, 2))
	require.NotContains(t, out.String(), "big.root")
	job.Status.Attempt = 3
	out.Reset()
	require.Error(t, c.list(t.Context(), &out, &warnings, job, -1, 2))
	require.NotContains(t, out.String(), "ELSEWHERE", "the status is about another attempt")
}

func TestAListThatBreaksOffIsNoList(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(aggregate.HeaderJobs, "1")
		_, _ = io.WriteString(w, `{"job":0,"pa`)
	})
	require.ErrorContains(t, c.list(t.Context(), io.Discard, io.Discard, &v1alpha1.HTCJob{}, 0, 0), "interrupted")
}
