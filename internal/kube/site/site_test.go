package site

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/pool"
)

func TestASitesFurtherSubmitCommandsMayBeUsed(t *testing.T) {
	job := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{UID: "u-1", Namespace: "default", Name: "zero"}}
	job.Spec.Script = v1alpha1.Script{Program: v1alpha1.Program{Image: "centos", Command: "bash", Source: "echo A"}}
	job.Spec.HTCOpts = "batch_project = x\n+ProjectX = 1\n"
	_, err := Site{}.Render(job, pool.Pool{}, 1, nil)
	require.Equal(t, condor.Refused, condor.KindOf(err))
	s, err := Site{AllowOptions: []string{"batch_project", "+ProjectX"}}.Render(job, pool.Pool{}, 1, nil)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(s.Files, func(f submit.File) bool {
		return f.Name == "job.sub" && strings.Contains(f.Content, "batch_project = x\nMy.ProjectX = 1\n")
	}))
}
